package local

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// astray is an address that a server may wrongly advertise. No server is there: whoever dials it is noted and turned away.
type astray struct {
	listener net.Listener
	source   func(netip.Addr) string // who dials from an address
	over     chan struct{}

	mu      sync.Mutex
	dialled map[string]int // by source
}

// newAstray listens at the address, which must be the run's own.
func newAstray(at netip.AddrPort, source func(netip.Addr) string) (*astray, error) {
	listener, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("listen where no server is: %w", err)
	}
	a := &astray{listener: listener, source: source, over: make(chan struct{}), dialled: map[string]int{}}
	go a.accept()
	return a, nil
}

func (a *astray) accept() {
	defer close(a.over)
	for {
		conn, err := a.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		from := a.source(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
		a.mu.Lock()
		a.dialled[from]++
		a.mu.Unlock()
		_ = conn.(*net.TCPConn).SetLinger(0) // a reset, which is as near to a refusal as one can come who wants to see who it was
		_ = conn.Close()
	}
}

// by is how often a server has dialled it.
func (a *astray) by(server string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dialled[server]
}

func (a *astray) close() {
	_ = a.listener.Close()
	<-a.over
}
