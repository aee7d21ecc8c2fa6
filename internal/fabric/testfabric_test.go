package fabric

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// patience is the limit of every wait of the tests. No wait should come near it.
const patience = 20 * time.Second

// forever is a delay that no test waits for. Data that it holds back must arrive by healing.
const forever = time.Hour

// testFabric is a fabric with three echo servers and an etcd, which echoes too. Each server dials
// from its own address.
type testFabric struct {
	*Fabric
	t     *testing.T
	hosts map[string]string // source address by name
}

func newTestFabric(t *testing.T) *testFabric {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	})
	b := &testFabric{t: t, hosts: map[string]string{"a": "127.0.0.2", "b": "127.0.0.3", "c": "127.0.0.4", fault.Client: "127.0.0.9"}}
	cfg := Config{}
	for i, name := range []string{"a", "b", "c", fault.Etcd} {
		cfg.Destinations = append(cfg.Destinations, Destination{
			Name:       name,
			Advertised: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(i + 1)}), 0),
			Real:       serveTCP(t, echo),
		})
		if name != fault.Etcd {
			cfg.Sources = append(cfg.Sources, Source{Name: name, Addr: netip.MustParseAddr(b.hosts[name])})
		}
	}
	b.Fabric = startFabric(t, cfg)
	return b
}

func startFabric(t *testing.T, cfg Config) *Fabric {
	t.Helper()
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// echo sends back everything that it reads until its peer ends the stream.
func echo(c *net.TCPConn) {
	_, _ = io.Copy(c, c)
	_ = c.CloseWrite()
}

// serveTCP runs a server on a loopback port; it and its connections end with the test.
func serveTCP(t *testing.T, handle func(*net.TCPConn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		tasks.Wait()
	})
	tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			tasks.Go(func() {
				defer func() { _ = c.Close() }()
				handle(c.(*net.TCPConn))
			})
		}
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// dialFrom connects from an address to an address. All reads and writes are bounded.
func dialFrom(t *testing.T, from, to string) *net.TCPConn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	c, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func (b *testFabric) dial(from, to string) *net.TCPConn {
	b.t.Helper()
	return dialFrom(b.t, b.hosts[from], b.Advertised(to).String())
}

// talk fails the test unless the connection echoes.
func (b *testFabric) talk(c io.ReadWriter) {
	b.t.Helper()
	send(b.t, c, "ping")
	receive(b.t, c, "ping")
}

// talking returns a new connection that has echoed.
func (b *testFabric) talking(from, to string) *net.TCPConn {
	b.t.Helper()
	c := b.dial(from, to)
	b.talk(c)
	return c
}

func send(t *testing.T, c io.Writer, data string) {
	t.Helper()
	if _, err := io.WriteString(c, data); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func receive(t *testing.T, c io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil {
		t.Fatalf("read: %v after %d of %d bytes", err, n, len(want))
	}
	if string(got) != want {
		t.Fatalf("read %q, want %q", got, want)
	}
}

// wantReset fails the test unless the connection is reset. It skips data that was sent before.
func wantReset(t *testing.T, c io.Reader) {
	t.Helper()
	if _, err := io.Copy(io.Discard, bufio.NewReader(c)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("the connection ended with %v, want a reset", err)
	}
}

// wantTurnedAway fails the test unless a new connection is reset before it carries data. The
// connect call itself may report the reset.
func wantTurnedAway(t *testing.T, from, to string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	c, err := dialer.DialContext(t.Context(), "tcp", to)
	if err == nil {
		defer func() { _ = c.Close() }()
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("a new connection ended with %v, want a reset", err)
	}
}

func (b *testFabric) wantTurnedAway(from, to string) {
	b.t.Helper()
	wantTurnedAway(b.t, b.hosts[from], b.Advertised(to).String())
}

func (b *testFabric) inject(f fault.Fault) *Active {
	b.t.Helper()
	a, err := b.Inject(b.t.Context(), f)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *testFabric) heal(a *Active) history.Fault {
	b.t.Helper()
	record, err := a.Heal(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return record
}

func (b *testFabric) status(from, to string) LinkStatus {
	b.t.Helper()
	for _, s := range b.Links() {
		if s.Name == LinkName(from, to) {
			return s
		}
	}
	b.t.Fatalf("no link %s", LinkName(from, to))
	return LinkStatus{}
}

// entered waits until the open connections of a link have sent n bytes into it, in total.
func (b *testFabric) entered(from, to string, d stream.Direction, n int64) {
	b.t.Helper()
	l, err := b.link(from, to)
	if err != nil {
		b.t.Fatal(err)
	}
	eventually(b.t, "the bytes have entered the link", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		var sum int64
		for c := range l.open {
			sum += c.pipes[d].in.Load()
		}
		return sum >= n
	})
}

// ended waits until n open connections of a link have ended a stream.
func (b *testFabric) ended(from, to string, d stream.Direction, n int) {
	b.t.Helper()
	l, err := b.link(from, to)
	if err != nil {
		b.t.Fatal(err)
	}
	eventually(b.t, "the end has entered the link", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		ended := 0
		for c := range l.open {
			if c.pipes[d].ended.Load() == inOrder {
				ended++
			}
		}
		return ended == n
	})
}

// wantEvidence compares the evidence without the bytes, which depend on the progress of streams.
func wantEvidence(t *testing.T, record history.Fault, want history.Evidence) {
	t.Helper()
	got := record.Evidence
	got.BytesUp, got.BytesDown = 0, 0
	if got != want {
		t.Errorf("%s: evidence %+v, want %+v", record.Kind, got, want)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for !condition() {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			stacks := make([]byte, 1<<20)
			t.Fatalf("gave up waiting until %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
