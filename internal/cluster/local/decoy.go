package local

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// decoy is an address that a server may wrongly advertise. It counts the connections of each source
// and resets them.
type decoy struct {
	listener net.Listener
	source   func(netip.Addr) string // the server or client that connects from an address
	over     chan struct{}

	mu      sync.Mutex
	dialled map[string]int // by source
}

// newDecoy listens at the address. The address must belong to the run.
func newDecoy(at netip.AddrPort, source func(netip.Addr) string) (*decoy, error) {
	listener, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("listen at an address without a server: %w", err)
	}
	d := &decoy{listener: listener, source: source, over: make(chan struct{}), dialled: map[string]int{}}
	go d.accept()
	return d, nil
}

func (d *decoy) accept() {
	defer close(d.over)
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		from := d.source(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
		d.mu.Lock()
		d.dialled[from]++
		d.mu.Unlock()
		_ = conn.(*net.TCPConn).SetLinger(0) // makes a reset; if the port refused connections, the source would not show
		_ = conn.Close()
	}
}

func (d *decoy) dialledBy(server string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialled[server]
}

func (d *decoy) close() {
	_ = d.listener.Close()
	<-d.over
}
