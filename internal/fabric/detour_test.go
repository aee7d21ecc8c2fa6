package fabric

import (
	"net"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
)

// A detour must not miss a connection of a server, because then a fetch that should fail would
// succeed. It must not take connections of clients, because then clients would see the change.
func TestDetourIsForOtherServersOnly(t *testing.T) {
	b := newTestFabric(t)
	via := serveTCP(t, func(c *net.TCPConn) {
		_, _ = c.Write([]byte("detour"))
		_ = c.CloseWrite()
	})
	before, own, client := b.dial("b", "a"), b.dial("a", "a"), b.dial(fault.Client, "a")
	for _, c := range []*net.TCPConn{before, own, client} {
		b.talk(c)
	}
	end, err := b.Detour("a", via)
	if err != nil {
		t.Fatal(err)
	}
	wantReset(t, before)
	b.talk(own)
	b.talk(client)
	led := func(from string) bool {
		c := b.dial(from, "a")
		buffer := make([]byte, 6)
		_, _ = c.Write([]byte("hello!"))
		_, err := c.Read(buffer)
		return err == nil && string(buffer[:1]) == "d"
	}
	for from, want := range map[string]bool{"a": false, "b": true, "c": true, fault.Client: false} {
		if got := led(from); got != want {
			t.Errorf("a connection of %s is led through the detour: %v, want %v", from, got, want)
		}
	}
	end()
	b.talking("b", "a")
	if _, err := b.Detour("d", via); err == nil {
		t.Error("a detour to an unknown server was taken")
	}
}
