package fabric

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
)

func TestEachSourceHasItsOwnLink(t *testing.T) {
	b := newTestFabric(t)
	for _, from := range []string{"a", "b", "c", fault.Client} {
		for _, to := range []string{"a", "b", "c"} {
			b.talking(from, to)
		}
		if from != fault.Client {
			b.talking(from, fault.Etcd)
		}
	}
	links := b.Links()
	if len(links) != 15 {
		t.Fatalf("%d links, want 15: client to 3 servers, 3 servers to 3 servers and etcd", len(links))
	}
	for _, s := range links {
		if s.Accepted != 1 || s.BytesUp != 4 || s.BytesDown != 4 || !s.Enabled || s.Refused != 0 || s.Unreachable != 0 {
			t.Errorf("%+v, want one connection with 4 bytes each way", s)
		}
	}
}

func TestOnlyServersReachEtcd(t *testing.T) {
	b := newTestFabric(t)
	b.wantTurnedAway(fault.Client, fault.Etcd)
}

func TestAddSource(t *testing.T) {
	b := newTestFabric(t)
	b.hosts["d"] = "127.0.0.5"
	b.talking("d", "a")
	if got := b.status(fault.Client, "a").Accepted; got != 1 {
		t.Fatalf("an unknown server: %d connections on client-to-a, want 1", got)
	}
	if err := b.addSource(Source{Name: "d", Addr: netip.MustParseAddr(b.hosts["d"])}); err != nil {
		t.Fatal(err)
	}
	b.talking("d", "a")
	if got := b.status("d", "a").Accepted; got != 1 {
		t.Fatalf("a known server: %d connections on d-to-a, want 1", got)
	}
	for name, s := range map[string]Source{
		"name taken":     {Name: "a", Addr: netip.MustParseAddr("127.0.0.6")},
		"address taken":  {Name: "e", Addr: netip.MustParseAddr("::ffff:127.0.0.2")},
		"no address":     {Name: "e"},
		"client":         {Name: fault.Client, Addr: netip.MustParseAddr("127.0.0.6")},
		"etcd":           {Name: fault.Etcd, Addr: netip.MustParseAddr("127.0.0.6")},
		"not a DNS name": {Name: "E_", Addr: netip.MustParseAddr("127.0.0.6")},
	} {
		if err := b.addSource(s); err == nil {
			t.Errorf("%s: source %+v was taken", name, s)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	real := serveTCP(t, echo)
	at := netip.MustParseAddrPort
	for _, test := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no real port", Config{Destinations: []Destination{{"a", at("127.0.1.1:0"), at("127.0.0.1:0")}}}, "not one that can be dialled"},
		{"no advertised address", Config{Destinations: []Destination{{Name: "a", Real: real}}}, "advertised address is missing"},
		{"itself", Config{Destinations: []Destination{{"a", real, real}}}, "would dial itself"},
		{"twice", Config{Destinations: []Destination{{"a", at("127.0.1.1:0"), real}, {"a", at("127.0.1.1:0"), real}}}, "twice"},
		{"name of the client", Config{Destinations: []Destination{{fault.Client, at("127.0.1.1:0"), real}}}, "reserved"},
		{"name like a link", Config{Destinations: []Destination{{"a-to-b", at("127.0.1.1:0"), real}}}, "separates"},
		{"taken port", Config{Destinations: []Destination{{"a", real, at("127.0.0.1:1")}}}, `advertised address of "a"`},
		{"open API", Config{API: at("0.0.0.0:0")}, "loopback only"},
		{"taken API", Config{API: real}, "toxiproxy's API"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := New(test.cfg)
			if err == nil {
				_ = f.Close()
				t.Fatal("was accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
}

func TestHalfClose(t *testing.T) {
	b := newTestFabric(t)
	c := b.dial("a", "b")
	data := strings.Repeat("half-close ", 100_000)
	go func() {
		_, _ = io.WriteString(c, data)
		_ = c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != data {
		t.Fatalf("read %d of %d bytes and %v after the end of the request", len(got), len(data), err)
	}
	eventually(t, "the connection is over", func() bool { return b.status("a", "b").Open == 0 })
}

func TestResetsArePassedOn(t *testing.T) {
	b := newTestFabric(t)
	c := b.talking("a", "b")
	drop(c)
	eventually(t, "the connection is over", func() bool { return b.status("a", "b").Open == 0 })
}

func TestUnreachableDestination(t *testing.T) {
	gone := serveTCP(t, echo)
	f := startFabric(t, Config{Destinations: []Destination{{"a", netip.MustParseAddrPort("127.0.1.1:0"), netip.AddrPortFrom(gone.Addr(), 1)}}})
	wantTurnedAway(t, "127.0.0.9", f.Advertised("a").String())
	if s := f.Links()[0]; s.Unreachable != 1 || s.Refused != 0 || s.Open != 0 {
		t.Errorf("%+v, want one unreachable", s)
	}
}

func TestCloseBreaksOpenConnections(t *testing.T) {
	b := newTestFabric(t)
	idle, busy, held := b.dial("a", "b"), b.dial("b", "c"), b.dial("c", "a")
	b.talk(idle)
	b.talk(busy)
	b.talk(held)
	b.inject(fault.Fault{Kind: fault.Timeout, From: "c", To: "a"})
	b.inject(fault.Fault{Kind: fault.Latency, From: "b", To: "c", Latency: forever})
	cut := b.inject(fault.Fault{Kind: fault.Cut, From: "b", To: "a"})
	send(t, busy, "held back")
	send(t, held, "swallowed")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	wantReset(t, idle)
	wantReset(t, busy)
	wantReset(t, held)
	if _, err := b.Inject(t.Context(), fault.Fault{Kind: fault.Cut, From: "a", To: "b"}); !errors.Is(err, errClosed) {
		t.Errorf("inject after close: %v", err)
	}
	if record, err := cut.Heal(t.Context()); !errors.Is(err, errClosed) || record.Kind != "cut" {
		t.Errorf("heal after close: %v and record %+v", err, record)
	}
	if err := b.addSource(Source{Name: "d", Addr: netip.MustParseAddr("127.0.0.5")}); !errors.Is(err, errClosed) {
		t.Errorf("add source after close: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// A write to a connection that the fabric has reset fails as on a real network.
func TestWriteAfterCut(t *testing.T) {
	b := newTestFabric(t)
	c := b.talking("a", "b")
	b.inject(fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	eventually(t, "writing fails", func() bool {
		_, err := io.WriteString(c, "x")
		return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	})
}
