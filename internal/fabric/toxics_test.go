package fabric

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

func TestFaultsOfOneLinkHealApart(t *testing.T) {
	b := newTestFabric(t)
	slow := b.inject(fault.Fault{Kind: fault.Latency, From: "a", To: "b", Latency: forever})
	cut := b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	b.wantTurnedAway("a", "b")
	wantEvidence(t, b.heal(cut), history.Evidence{Refused: 1})

	c := b.dial("a", "b")
	send(t, c, "late")
	b.entered("a", "b", stream.Upstream, 4)
	thin := b.inject(fault.Fault{Kind: fault.Bandwidth, From: "a", To: "b", Rate: 1e9})
	send(t, c, "more")
	b.entered("a", "b", stream.Upstream, 8)
	wantEvidence(t, b.heal(thin), history.Evidence{Affected: 1})
	wantEvidence(t, b.heal(slow), history.Evidence{Affected: 1})
	receive(t, c, "latemore")
	b.talk(c)
}

func TestRejectedCombinationsLeaveTheLinkAlone(t *testing.T) {
	b := newTestFabric(t)
	c := b.dial("a", "b")
	for _, test := range []struct{ present, added fault.Fault }{
		{fault.Fault{Kind: fault.Latency, Latency: 1e6, Direction: fault.Down}, fault.Fault{Kind: fault.Reset}},
		{fault.Fault{Kind: fault.Timeout, Direction: fault.Down}, fault.Fault{Kind: fault.Latency, Latency: forever}},
		{fault.Fault{Kind: fault.LimitData, Bytes: 1 << 20}, fault.Fault{Kind: fault.LimitData, Bytes: 1}},
	} {
		test.present.From, test.present.To, test.added.From, test.added.To = "a", "b", "a", "b"
		present := b.inject(test.present)
		_, err := b.Inject(t.Context(), test.added)
		if err == nil || !strings.Contains(err.Error(), "heal that first") {
			t.Errorf("%s with %s: %v", test.added, test.present, err)
		}
		b.heal(present)
		b.talk(c)
	}
	// The other stream can have toxics.
	up := b.inject(fault.Fault{Kind: fault.Reset, From: "a", To: "b", Direction: fault.Up, After: forever})
	down := b.inject(fault.Fault{Kind: fault.Latency, From: "a", To: "b", Direction: fault.Down, Latency: 1e6})
	b.heal(up)
	b.heal(down)
	b.talk(c)
}

// flood opens a connection whose server sends endlessly and whose client does not read, so that the
// data between them is stuck.
func flood(t *testing.T) (f *Fabric, c *net.TCPConn) {
	t.Helper()
	f = startFabric(t, Config{Destinations: []Destination{{"a", netip.MustParseAddrPort("127.0.1.1:0"), serveTCP(t, func(c *net.TCPConn) {
		for block := make([]byte, 1<<20); ; {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})}}})
	c = dialFrom(t, "127.0.0.9", f.Advertised("a").String())
	l, err := f.link(fault.Client, "a")
	if err != nil {
		t.Fatal(err)
	}
	// The link is stuck if the same write is seen many times.
	var last int64
	same := 0
	eventually(t, "the link is stuck", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.open {
			if write := c.pipes[stream.Downstream].writing.Load(); write == 0 || write != last {
				last, same = write, 0
			} else {
				same++
			}
		}
		return same > 100
	})
	return f, c
}

func TestReceiverThatDoesNotReadCannotHoldUpFaults(t *testing.T) {
	f, c := flood(t)
	a, err := f.Inject(t.Context(), fault.Fault{Kind: fault.Latency, From: fault.Client, To: "a", Latency: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	wantReset(t, c)
	record, err := a.Heal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if record.Evidence.Cut != 1 {
		t.Errorf("evidence %+v, want the connection cut", record.Evidence)
	}
}

func TestInjectHonoursItsContext(t *testing.T) {
	f, c := flood(t)
	reason := errors.New("the step has taken too long")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := f.Inject(ctx, fault.Fault{Kind: fault.Latency, From: fault.Client, To: "a", Latency: 1e6}); !errors.Is(err, reason) {
		t.Errorf("inject: %v, want %v", err, reason)
	}
	wantReset(t, c)
	l, err := f.link(fault.Client, "a")
	if err != nil {
		t.Fatal(err)
	}
	if left := l.toxics(stream.Downstream); len(left) > 0 {
		t.Errorf("%d toxics are left behind", len(left))
	}
}

// toxiproxy loses count of the toxics of an ending stream if a toxic in front of another one is
// removed: the other toxic stays, and the next one to be added panics. In this test the slicer has
// seen the end and the latency holds it back.
func TestHealingWhileAStreamEnds(t *testing.T) {
	b := newTestFabric(t)
	front := b.inject(fault.Fault{Kind: fault.Slicer, From: "a", To: "b", Direction: fault.Up, Size: 1024})
	behind := b.inject(fault.Fault{Kind: fault.Latency, From: "a", To: "b", Direction: fault.Up, Latency: forever})
	c := b.dial("a", "b")
	send(t, c, "late")
	b.entered("a", "b", stream.Upstream, 4)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b.ended("a", "b", stream.Upstream, 1)
	b.heal(front)
	third := b.inject(fault.Fault{Kind: fault.Bandwidth, From: "a", To: "b", Direction: fault.Up, Rate: 1e9})
	b.heal(behind)
	b.heal(third)
	if got, err := io.ReadAll(c); err != nil || string(got) != "late" {
		t.Errorf("read %q and %v, want the echo and the end", got, err)
	}
}

// Faults are injected and healed while connections open and close. Nothing hangs, no data is lost,
// and afterwards everything works.
func TestFaultsUnderLoad(t *testing.T) {
	b := newTestFabric(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(b.hosts["a"])}}
			for ctx.Err() == nil {
				c, err := dialer.DialContext(ctx, "tcp", b.Advertised("b").String())
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				for range 5 {
					if _, err := c.Write(make([]byte, 100<<10)); err != nil {
						break
					}
					if _, err := io.CopyN(io.Discard, c, 100<<10); err != nil {
						break
					}
				}
				stop()
				_ = c.Close()
			}
		})
	}
	for range 5 {
		for _, f := range valid("a", "b") {
			if f.Kind == fault.Latency {
				f.Latency, f.Jitter = 2e6, 1e6
			}
			a := b.inject(f)
			cut := b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
			was := b.status("a", "b")
			eventually(t, "the cut turns clients away", func() bool { return b.status("a", "b").Refused > was.Refused })
			b.heal(cut)
			if f.Kind != fault.Cut {
				// All connections were broken, so the clients connect again and meet the other
				// fault.
				eventually(t, "the clients come again", func() bool { return b.status("a", "b").Accepted > was.Accepted })
			}
			b.heal(a)
		}
	}
	cancel()
	clients.Wait()
	b.talking("a", "b")
	eventually(t, "the connections are over", func() bool { return b.status("a", "b").Open == 1 })
}
