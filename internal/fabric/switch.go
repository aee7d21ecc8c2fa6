package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

// acceptPause is how long the switch waits after an error such as too many open files. Trying again
// at once would only take CPU that other tasks need to finish.
const acceptPause = 50 * time.Millisecond

func (f *Fabric) listen(name string) error {
	d := f.destinations[name]
	var config net.ListenConfig
	listener, err := config.Listen(f.ctx, "tcp", d.Advertised.String())
	if err != nil {
		return fmt.Errorf("listen on the advertised address of %q: %w: is the address on an interface, and nothing else there?", name, err)
	}
	d.Advertised = listener.Addr().(*net.TCPAddr).AddrPort()
	f.destinations[name] = d
	f.listeners = append(f.listeners, listener)
	f.tasks.Go(func() { f.accept(name, listener) })
	return nil
}

func (f *Fabric) accept(to string, listener net.Listener) {
	for {
		accepted, err := listener.Accept()
		switch {
		case err == nil:
			f.tasks.Go(func() { f.route(to, accepted.(*net.TCPConn)) })
		case errors.Is(err, net.ErrClosed):
			return
		default:
			f.server.Logger.Err(err).Str("destination", to).Msg("the switch cannot accept connections")
			select {
			case <-time.After(acceptPause):
			case <-f.ctx.Done():
				return
			}
		}
	}
}

func (f *Fabric) route(to string, accepted *net.TCPConn) {
	from := f.source(accepted.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())
	l, err := f.link(from, to)
	if err != nil {
		f.server.Logger.Warn().Err(err).Stringer("peer", accepted.RemoteAddr()).Msg("the switch has turned a connection away")
		drop(accepted)
		return
	}
	l.serve(f.ctx, accepted)
}

func (f *Fabric) source(addr netip.Addr) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name, ok := f.sources[addr.Unmap()]; ok {
		return name
	}
	return fault.Client
}

// Detour leads new connections of other servers to a destination through another address. The
// server at this address must forward them to the real address of the destination. Detour resets
// open connections, because they do not take the detour. Connections of clients, and of the
// destination to itself, are not affected. Ending the detour affects new connections only. Faults
// of the links continue to act.
func (f *Fabric) Detour(to string, via netip.AddrPort) (end func(), err error) {
	links, err := f.peersTo(to)
	if err != nil {
		return nil, fmt.Errorf("lead connections to %q through %s: %w", to, via, err)
	}
	before := make([]string, len(links))
	for i, l := range links {
		before[i] = l.setUpstream(via.String())
		l.breakOpen(nil, nil)
	}
	return func() {
		for i, l := range links {
			l.setUpstream(before[i])
		}
	}, nil
}

// setUpstream changes the destination of new connections, and returns the one before. toxiproxy's
// own call would refuse connections for a short time.
func (l *link) setUpstream(upstream string) (before string) {
	l.proxy.Lock()
	defer l.proxy.Unlock()
	before, l.proxy.Upstream = l.proxy.Upstream, upstream
	return before
}
