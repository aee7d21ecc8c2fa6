package fabric

import (
	"fmt"
	"net/netip"
)

// Detour leads what other servers dial at a destination through another address, which is to pass it on to where the destination really
// listens. Connections that are open are reset, since they go straight; those of clients, and of the destination to itself, stay as they are.
// The end of a detour is for new connections only: open ones stay on it. Faults of the links are in force on a detour as well.
func (f *Fabric) Detour(to string, via netip.AddrPort) (end func(), err error) {
	links, err := f.peersTo(to)
	if err != nil {
		return nil, fmt.Errorf("lead connections to %q through %s: %w", to, via, err)
	}
	straight := make([]string, len(links))
	for i, l := range links {
		straight[i] = l.lead(via.String())
		l.breakOpen(nil, nil)
	}
	return func() {
		for i, l := range links {
			l.lead(straight[i])
		}
	}, nil
}

// lead changes where new connections are led, and returns where they were. toxiproxy's own way of changing that would refuse connections for
// a moment.
func (l *link) lead(upstream string) (before string) {
	l.proxy.Lock()
	defer l.proxy.Unlock()
	before, l.proxy.Upstream = l.proxy.Upstream, upstream
	return before
}
