package fabric

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// bystanders talk over links that a test of a→b must not affect. check fails if they were affected.
func (b *testFabric) bystanders() (check func()) {
	b.t.Helper()
	var conns []*net.TCPConn
	for _, ends := range [][2]string{{"b", "a"}, {"c", "b"}, {fault.Client, "b"}, {"a", "c"}, {"a", fault.Etcd}} {
		conns = append(conns, b.talking(ends[0], ends[1]))
	}
	return func() {
		b.t.Helper()
		for _, c := range conns {
			b.talk(c)
		}
		b.talking("c", "b")
		b.talking(fault.Client, "b")
		b.talking("b", "a")
	}
}

func TestCut(t *testing.T) {
	b := newTestFabric(t)
	check := b.bystanders()
	c := b.talking("a", "b")

	a := b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	wantReset(t, c)
	for range 3 {
		b.wantTurnedAway("a", "b")
	}
	check()
	if b.status("a", "b").Enabled {
		t.Error("the link counts as enabled while it is cut")
	}

	record := b.heal(a)
	wantEvidence(t, record, history.Evidence{Refused: 3, Cut: 1})
	if !record.Blocks || record.From != "a" || record.To != "b" || record.Detail != "cut" || record.End < record.Start {
		t.Errorf("record %+v", record)
	}
	b.talking("a", "b")
	check()
}

func TestCutsOverlap(t *testing.T) {
	b := newTestFabric(t)
	b.talking("a", "b")
	first := b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	second := b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	b.wantTurnedAway("a", "b")
	wantEvidence(t, b.heal(first), history.Evidence{Refused: 1, Cut: 1})
	b.wantTurnedAway("a", "b")
	wantEvidence(t, b.heal(second), history.Evidence{Refused: 2})
	b.talking("a", "b")
}

func TestCutResetsTheServerToo(t *testing.T) {
	ended := make(chan error, 1)
	f := startFabric(t, Config{Destinations: []Destination{{"a", netip.MustParseAddrPort("127.0.1.1:0"), serveTCP(t, func(c *net.TCPConn) {
		_, err := io.Copy(c, c)
		ended <- err
	})}}})
	c := dialFrom(t, "127.0.0.9", f.Advertised("a").String())
	send(t, c, "ping")
	receive(t, c, "ping")
	if _, err := f.Inject(t.Context(), fault.Fault{Kind: fault.Cut, From: fault.Client, To: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server's connection ended with %v, want a reset", err)
	}
}

func TestLatency(t *testing.T) {
	for _, test := range []struct {
		direction fault.Direction
		stuck     stream.Direction // where the ping is stuck
	}{
		{"", stream.Upstream}, {fault.Both, stream.Upstream}, {fault.Up, stream.Upstream}, {fault.Down, stream.Downstream},
	} {
		t.Run(string(test.direction), func(t *testing.T) {
			b := newTestFabric(t)
			check := b.bystanders()
			open := b.talking("a", "b")
			before := b.status("a", "b")
			a := b.inject(fault.Fault{Kind: fault.Latency, From: "a", To: "b", Direction: test.direction, Latency: forever, Jitter: forever / 10})
			fresh := b.dial("a", "b")
			send(t, open, "late")
			send(t, fresh, "late")
			b.entered("a", "b", test.stuck, 4+4+4)
			check()
			s := b.status("a", "b")
			if test.stuck == stream.Upstream && s.BytesUp != before.BytesUp || s.BytesDown != before.BytesDown {
				t.Errorf("%+v: something got through", s)
			}
			record := b.heal(a)
			receive(t, open, "late")
			receive(t, fresh, "late")
			wantEvidence(t, record, history.Evidence{Affected: 2})
			if record.Blocks {
				t.Error("a latency does not block")
			}
			b.talk(open)
		})
	}
}

func TestTimeout(t *testing.T) {
	for _, test := range []struct {
		direction fault.Direction
		enters    stream.Direction
	}{
		{fault.Both, stream.Upstream}, {fault.Up, stream.Upstream}, {fault.Down, stream.Downstream},
	} {
		t.Run(string(test.direction), func(t *testing.T) {
			b := newTestFabric(t)
			check := b.bystanders()
			idle, open := b.talking("a", "b"), b.talking("a", "b")
			before := b.status("a", "b")
			a := b.inject(fault.Fault{Kind: fault.Timeout, From: "a", To: "b", Direction: test.direction})
			fresh := b.dial("a", "b")
			send(t, open, "lost")
			send(t, fresh, "lost")
			b.entered("a", "b", test.enters, 4+4+4+4)
			check()
			if s := b.status("a", "b"); s.BytesDown != before.BytesDown || s.Open != 3 {
				t.Errorf("%+v: want three open connections and no byte down", s)
			}
			record := b.heal(a)
			wantReset(t, open)
			wantReset(t, fresh)
			b.talk(idle)
			b.talking("a", "b")
			wantEvidence(t, record, history.Evidence{Affected: 2, Cut: 2})
			if !record.Blocks || record.Evidence.BytesDown != 0 {
				t.Errorf("record %+v, want one that blocks", record)
			}
		})
	}
}

// A toxic that is removed ends connections at the same time as the heal that removes it. Whoever
// comes second must not read the tally before the first one has counted.
func TestAnEndIsCountedBeforeAnyEndReturns(t *testing.T) {
	w := &tally{}
	l := &link{tallies: map[*tally]struct{}{w: {}}, open: map[*conn]struct{}{}}
	c := newConn(t.Context(), l, "", nil)
	over := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.over
	}
	l.mu.Lock() // so that the first end cannot count yet
	go c.end(resetting, func(*tally) bool { return true })
	eventually(t, "the connection is over", over)
	var returned atomic.Bool
	second := make(chan struct{})
	go func() {
		defer close(second)
		c.end(resetting, nil)
		returned.Store(true)
	}()
	for range 10_000 { // the second end has the time to return, if it does not wait
		runtime.Gosched()
	}
	if returned.Load() {
		t.Error("the second end returned before the first was counted")
	}
	l.mu.Unlock()
	<-second
	if w.cut != 1 {
		t.Errorf("%d ends were counted, want 1", w.cut)
	}
}

func TestTimeoutSwallowsTheEnd(t *testing.T) {
	b := newTestFabric(t)
	c := b.talking("a", "b")
	a := b.inject(fault.Fault{Kind: fault.Timeout, From: "a", To: "b", Direction: fault.Up})
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b.ended("a", "b", stream.Upstream, 1)
	if open := b.status("a", "b").Open; open != 1 {
		t.Fatalf("%d connections are open, want 1", open)
	}
	// The toxic swallowed only the end of the stream. So the end can still arrive after the heal,
	// and the server answers with its own end.
	wantEvidence(t, b.heal(a), history.Evidence{})
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Errorf("after the heal: %q and %v, want the end", rest, err)
	}
}

func TestTimeoutAfter(t *testing.T) {
	b := newTestFabric(t)
	c := b.talking("a", "b")
	a := b.inject(fault.Fault{Kind: fault.Timeout, From: "a", To: "b", Direction: fault.Down, After: 1e6})
	wantReset(t, c)
	wantEvidence(t, b.heal(a), history.Evidence{Cut: 1})
	b.talking("a", "b")
}

func TestReset(t *testing.T) {
	for _, direction := range []fault.Direction{fault.Both, fault.Up, fault.Down} {
		t.Run(string(direction), func(t *testing.T) {
			b := newTestFabric(t)
			check := b.bystanders()
			idle, open := b.talking("a", "b"), b.talking("a", "b")
			a := b.inject(fault.Fault{Kind: fault.Reset, From: "a", To: "b", Direction: direction, After: 1e6})
			fresh := b.dial("a", "b")
			send(t, open, "doomed")
			send(t, fresh, "doomed")
			wantReset(t, open)
			wantReset(t, fresh)
			check()
			record := b.heal(a)
			wantEvidence(t, record, history.Evidence{Cut: 2})
			if record.Evidence.BytesDown != 0 {
				t.Errorf("%d bytes got down", record.Evidence.BytesDown)
			}
			b.talk(idle)
		})
	}
}

func TestResetCanBeHealedWhileItWaits(t *testing.T) {
	b := newTestFabric(t)
	c := b.talking("a", "b")
	a := b.inject(fault.Fault{Kind: fault.Reset, From: "a", To: "b", After: forever})
	send(t, c, "spared")
	b.entered("a", "b", stream.Upstream, 4+6)
	wantEvidence(t, b.heal(a), history.Evidence{})
	receive(t, c, "spared")
}

func TestBandwidth(t *testing.T) {
	b := newTestFabric(t)
	check := b.bystanders()
	c := b.talking("a", "b")
	a := b.inject(fault.Fault{Kind: fault.Bandwidth, From: "a", To: "b", Direction: fault.Up, Rate: 1000})
	// The data fits into the socket buffers, so that the writer does not wait for the link.
	data := strings.Repeat("slow ", 8<<10)
	send(t, c, data)
	b.entered("a", "b", stream.Upstream, 4+1)
	check()
	// The first 100 bytes take 100 ms, and all the data takes 40 s.
	receive(t, c, data[:100])
	if up := b.status("a", "b").BytesUp; up >= int64(len(data)) {
		t.Errorf("all of %d bytes got through", up)
	}
	record := b.heal(a)
	receive(t, c, data[100:])
	wantEvidence(t, record, history.Evidence{Affected: 1})
}

func TestLimitData(t *testing.T) {
	for _, direction := range []fault.Direction{fault.Up, fault.Down} {
		t.Run(string(direction), func(t *testing.T) {
			b := newTestFabric(t)
			check := b.bystanders()
			open := b.talking("a", "b")
			a := b.inject(fault.Fault{Kind: fault.LimitData, From: "a", To: "b", Direction: direction, Bytes: 10})
			below, fresh := b.dial("a", "b"), b.dial("a", "b")
			b.talk(below)
			for _, c := range []*net.TCPConn{open, fresh} {
				b.talk(c)
				b.talk(c)
				send(t, c, "truncated")
				got, err := io.ReadAll(c)
				if direction == fault.Down && (err != nil || string(got) != "tr") {
					t.Errorf("read %q and %v, want two more bytes and the end", got, err)
				}
				if direction == fault.Up && len(got) > 2 {
					t.Errorf("read %q, want two bytes at most", got)
				}
			}
			check()
			record := b.heal(a)
			wantEvidence(t, record, history.Evidence{Cut: 2})
			b.talk(below)
			b.talk(below)
		})
	}
}

func TestSlicer(t *testing.T) {
	b := newTestFabric(t)
	check := b.bystanders()
	c := b.talking("a", "b")
	a := b.inject(fault.Fault{Kind: fault.Slicer, From: "a", To: "b", Direction: fault.Down, Size: 8, Variation: 1, Delay: forever})
	data := strings.Repeat("0123456789abcdef", 4)
	send(t, c, data)
	b.entered("a", "b", stream.Downstream, 4+int64(len(data)))
	check()
	first := make([]byte, len(data))
	n, err := c.Read(first)
	if err != nil || n > 9 {
		t.Fatalf("read %d bytes and %v, want one slice of at most 9", n, err)
	}
	record := b.heal(a)
	receive(t, c, data[n:])
	wantEvidence(t, record, history.Evidence{Affected: 1})
}

func TestSlowClose(t *testing.T) {
	b := newTestFabric(t)
	check := b.bystanders()
	idle, open := b.talking("a", "b"), b.talking("a", "b")
	a := b.inject(fault.Fault{Kind: fault.SlowClose, From: "a", To: "b", Direction: fault.Down, Delay: forever})
	b.talk(open) // data passes
	b.talk(idle)
	if err := open.CloseWrite(); err != nil { // the echo server then ends its side too
		t.Fatal(err)
	}
	b.ended("a", "b", stream.Downstream, 1)
	check()
	if open := b.status("a", "b").Open; open != 2 {
		t.Errorf("%d connections open, want both", open)
	}
	record := b.heal(a)
	if rest, err := io.ReadAll(open); err != nil || len(rest) > 0 {
		t.Errorf("after the heal: %q and %v, want the end", rest, err)
	}
	wantEvidence(t, record, history.Evidence{Affected: 1})
	b.talk(idle)
}

// The evidence must show that a fault affected nothing, because a run whose faults have no effect
// proves nothing.
func TestEvidenceIsZeroWithoutTraffic(t *testing.T) {
	b := newTestFabric(t)
	idle := b.talking("a", "b")
	for _, f := range valid("a", "b") {
		if f.Kind == fault.Cut {
			continue // breaks idle connections too
		}
		if record := b.heal(b.inject(f)); record.Effective() {
			t.Errorf("%s: evidence %+v on an idle connection", f, record.Evidence)
		}
	}
	b.talk(idle)
	if record := b.heal(b.inject(fault.Fault{Kind: fault.Cut, From: "b", To: "a"})); record.Effective() {
		t.Errorf("evidence %+v on an unused link", record.Evidence)
	}
}

// valid returns one fault of each kind.
func valid(from, to string) []fault.Fault {
	return []fault.Fault{
		{Kind: fault.Bandwidth, From: from, To: to, Rate: 1000},
		{Kind: fault.Cut, From: from, To: to},
		{Kind: fault.Latency, From: from, To: to, Latency: 200e6, Jitter: 50e6},
		{Kind: fault.LimitData, From: from, To: to, Bytes: 100},
		{Kind: fault.Reset, From: from, To: to},
		{Kind: fault.Slicer, From: from, To: to, Size: 16, Variation: 4, Delay: 1e6},
		{Kind: fault.SlowClose, From: from, To: to, Delay: 1e6},
		{Kind: fault.Timeout, From: from, To: to},
	}
}

// The effects of a fault are excused while its record says that it was on. If the record began
// after the fault or ended before it, servers would be blamed for the rest of the effects.
func TestARecordLastsAtLeastAsLongAsItsFault(t *testing.T) {
	var f *Fabric
	var cut []bool // whether the link was cut, at each reading of the clock
	f = startFabric(t, Config{
		Destinations: []Destination{{"a", netip.MustParseAddrPort("127.0.1.1:0"), serveTCP(t, echo)}},
		Now: func() history.Time {
			cut = append(cut, !f.Links()[0].Enabled)
			return history.Time(len(cut))
		},
	})
	a, err := f.Inject(t.Context(), fault.Fault{Kind: fault.Cut, From: fault.Client, To: "a"})
	if err != nil {
		t.Fatal(err)
	}
	wantTurnedAway(t, "127.0.0.9", f.Advertised("a").String())
	record, err := a.Heal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(cut) != 2 || cut[0] || cut[1] || record.Start != 1 || record.End != 2 {
		t.Errorf("%+v, and when the clock was read the link was cut: %v; want it read before that, and after it", record, cut)
	}
}

func TestHealIsIdempotent(t *testing.T) {
	f := startFabric(t, Config{Destinations: []Destination{
		{"a", netip.MustParseAddrPort("127.0.1.1:0"), serveTCP(t, echo)},
	}})
	a, err := f.Inject(t.Context(), fault.Fault{Kind: fault.Cut, From: fault.Client, To: "a"})
	if err != nil {
		t.Fatal(err)
	}
	wantTurnedAway(t, "127.0.0.9", f.Advertised("a").String())
	first, err1 := a.Heal(t.Context())
	second, err2 := a.Heal(t.Context())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if first != second || first.ID != 1 {
		t.Errorf("records %+v and %+v, want the same with ID 1", first, second)
	}
}

// BenchmarkRoundTrip measures the cost of the switch and a link without faults for a request and
// its answer of 1 kB.
func BenchmarkRoundTrip(b *testing.B) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go echo(c.(*net.TCPConn))
		}
	}()
	real := server.Addr().(*net.TCPAddr).AddrPort()
	f, err := New(Config{Destinations: []Destination{{"a", netip.MustParseAddrPort("127.0.1.1:0"), real}}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for name, address := range map[string]netip.AddrPort{"direct": real, "link": f.Advertised("a")} {
		b.Run(name, func(b *testing.B) {
			c, err := net.Dial("tcp", address.String())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			buf := make([]byte, 1000)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
