package fabric

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

// If every server has its own etcd member, one address leads each server to its own member. Cutting
// one of these links does not affect the others.
func TestLinksMayLeadUpstreams(t *testing.T) {
	says := func(word string) netip.AddrPort {
		return serveTCP(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, word) })
	}
	f := startFabric(t, Config{
		Destinations: []Destination{{fault.Etcd, netip.MustParseAddrPort("127.0.1.1:0"), says("usual")}},
		Sources:      []Source{{Name: "a", Addr: netip.MustParseAddr("127.0.0.2")}, {Name: "b", Addr: netip.MustParseAddr("127.0.0.3")}},
		Upstreams:    map[string]netip.AddrPort{LinkName("b", fault.Etcd): says("other")},
	})
	for from, want := range map[string]string{"127.0.0.2": "usual", "127.0.0.3": "other"} {
		receive(t, dialFrom(t, from, f.Advertised(fault.Etcd).String()), want)
	}
	if _, err := f.Inject(t.Context(), fault.Fault{Kind: fault.Cut, From: "b", To: fault.Etcd}); err != nil {
		t.Fatal(err)
	}
	receive(t, dialFrom(t, "127.0.0.2", f.Advertised(fault.Etcd).String()), "usual")
	// The connection is reset while it is dialled, or right after.
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.3")}, Timeout: patience}
	c, err := dialer.DialContext(t.Context(), "tcp", f.Advertised(fault.Etcd).String())
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("b, which is cut off from its etcd, got an answer")
	}
}
