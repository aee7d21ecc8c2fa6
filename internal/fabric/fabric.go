// Package fabric injects faults between the servers of a run, their clients and etcd. A switch
// listens at the addresses that all of them dial, and recognises the dialling end by its source
// address. Each pair of ends has a toxiproxy link, so that a→b can be cut while c→b is healthy.
//
// The switch works on TCP connections and sees no requests. TLS passes through, so watches,
// WebSockets and other upgraded connections are covered. toxiproxy runs embedded. Its HTTP API
// works with its own tools.
package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// dialTimeout is the time limit for a dial of the switch, as in http.DefaultTransport.
const dialTimeout = 30 * time.Second

// Config says which ends a Fabric connects.
type Config struct {
	// Destinations are fixed for the life of the fabric.
	Destinations []Destination
	// Sources are the servers. A connection from another address belongs to [fault.Client].
	Sources []Source
	// Upstreams are the links that do not lead to their destination's real address, by [LinkName].
	// They are used, for example, if each server has its own etcd member. nil: none.
	Upstreams map[string]netip.AddrPort
	// API is the loopback address of toxiproxy's HTTP API. Zero: any port, see [Fabric.API].
	API netip.AddrPort
	// Log receives toxiproxy's log as JSON lines; nil discards it. Nothing is written to it after
	// Close.
	Log io.Writer
	// Now is the clock of the run; nil means wall time since New.
	Now func() history.Time
}

// Fabric is a running switch. Its methods are safe for concurrent use.
type Fabric struct {
	now    func() history.Time
	faults atomic.Int64 // number of faults injected so far
	log    *logWriter
	server *toxiproxy.ApiServer

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	tasks   sync.WaitGroup // accept loops, connections being set up, the API
	streams sync.WaitGroup

	destinations map[string]Destination // with the actual port
	upstreams    map[string]netip.AddrPort
	listeners    []net.Listener
	api          *http.Server
	apiAddr      netip.AddrPort

	mu      sync.Mutex
	closed  bool
	sources map[netip.Addr]string
	links   map[string]*link // by LinkName
}

// New listens on the advertised addresses and on the address of the API. After an error nothing
// runs.
func New(cfg Config) (*Fabric, error) {
	if cfg.Now == nil {
		start := time.Now()
		cfg.Now = func() history.Time { return time.Since(start) }
	}
	f := &Fabric{
		now: cfg.Now, log: &logWriter{w: cfg.Log}, upstreams: cfg.Upstreams,
		destinations: map[string]Destination{}, sources: map[netip.Addr]string{}, links: map[string]*link{},
	}
	f.server = newServer(f.log)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if err := f.start(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start the fault fabric: %w", err), f.Close())
	}
	return f, nil
}

func (f *Fabric) start(cfg Config) error {
	var errs []error
	for _, d := range cfg.Destinations {
		errs = append(errs, d.check())
		if _, twice := f.destinations[d.Name]; twice {
			errs = append(errs, fmt.Errorf("destination %q is given twice", d.Name))
		}
		f.destinations[d.Name] = d
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.destinations)) {
		if name == fault.Etcd {
			continue
		}
		if err := f.addLink(fault.Client, name); err != nil {
			return err
		}
	}
	for _, s := range cfg.Sources {
		if err := f.addSource(s); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.destinations)) {
		if err := f.listen(name); err != nil {
			return err
		}
	}
	return f.serveAPI(cfg.API)
}

// addSource adds a server by its address, with a link to every destination, including itself.
func (f *Fabric) addSource(s Source) error {
	if err := s.check(); err != nil {
		return err
	}
	addr := s.Addr.Unmap()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("add source %q: %w", s.Name, errClosed)
	}
	for known, name := range f.sources {
		if known == addr || name == s.Name {
			return fmt.Errorf("source %q at %s: source %q is at %s already", s.Name, addr, name, known)
		}
	}
	for _, to := range slices.Sorted(maps.Keys(f.destinations)) {
		if err := f.addLink(s.Name, to); err != nil {
			return err
		}
	}
	f.sources[addr] = s.Name
	return nil
}

// addLink is called with mu held, or before New returns f.
func (f *Fabric) addLink(from, to string) error {
	name := LinkName(from, to)
	proxy := toxiproxy.NewProxy(f.server, name, anyPort, f.realOf(from, to).String())
	if err := f.server.Collection.Add(proxy, true); err != nil {
		return fmt.Errorf("start link %s: %w", name, err)
	}
	f.links[name] = &link{
		from: from, to: to, proxy: proxy, server: f.server, running: &f.streams, dialer: &net.Dialer{Timeout: dialTimeout},
		open: map[*conn]struct{}{}, tallies: map[*tally]struct{}{},
	}
	return nil
}

func (f *Fabric) realOf(from, to string) netip.AddrPort {
	if real, ok := f.upstreams[LinkName(from, to)]; ok {
		return real
	}
	return f.destinations[to].Real
}

// link returns a link. If there is none, the error says which name is wrong.
func (f *Fabric) link(from, to string) (*link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if l, ok := f.links[LinkName(from, to)]; ok {
		return l, nil
	}
	return nil, f.explain(from, to)
}

// peersTo returns the links of other servers to a destination, sorted by name. There is at least
// one.
func (f *Fabric) peersTo(to string) ([]*link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	var found []*link
	for _, name := range slices.Sorted(maps.Keys(f.links)) {
		if l := f.links[name]; l.to == to && l.from != to && l.from != fault.Client {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return nil, f.explain(fault.Any, to)
	}
	return found, nil
}

// explain returns the reason why there is no link between two names. The caller holds mu.
func (f *Fabric) explain(from, to string) error {
	sources := map[string]bool{fault.Any: true}
	for _, l := range f.links {
		sources[l.from] = true
	}
	if !sources[from] {
		delete(sources, fault.Any)
		return fmt.Errorf("unknown source %q%s", from, fault.Suggest(from, slices.Sorted(maps.Keys(sources))))
	}
	if _, ok := f.destinations[to]; !ok {
		return fmt.Errorf("unknown destination %q%s", to, fault.Suggest(to, slices.Sorted(maps.Keys(f.destinations))))
	}
	return fmt.Errorf("there is no link from %q to %q: %q is dialled by servers only, and %q does not stand for a server's link to itself",
		from, to, fault.Etcd, fault.Any)
}

// Links returns the state of all links, sorted by name.
func (f *Fabric) Links() []LinkStatus {
	links := f.allLinks()
	status := make([]LinkStatus, 0, len(links))
	for _, l := range links {
		status = append(status, l.status())
	}
	slices.SortFunc(status, func(a, b LinkStatus) int { return strings.Compare(a.Name, b.Name) })
	return status
}

// Dials returns the connections to a destination so far, by source. Refused connections count too.
// The sources dial address.
func (f *Fabric) Dials(to, address string) []history.Dial {
	var dials []history.Dial
	for _, l := range f.Links() {
		if n := l.Accepted + l.Refused; l.To == to && n > 0 {
			dials = append(dials, history.Dial{From: l.From, Address: address, Connections: n})
		}
	}
	return dials
}

func (f *Fabric) allLinks() []*link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.links))
}

// Advertised returns the address to dial for a destination; zero if there is none.
func (f *Fabric) Advertised(name string) netip.AddrPort { return f.destinations[name].Advertised }

// API returns the address of toxiproxy's HTTP API.
func (f *Fabric) API() netip.AddrPort { return f.apiAddr }

// Close resets all connections, stops listening and waits until everything has ended. Active faults
// end without a record: call [Active.Heal] before. A second call does nothing.
func (f *Fabric) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.mu.Unlock()

	f.cancel()
	var errs []error
	for _, l := range f.listeners {
		errs = append(errs, l.Close())
	}
	if f.api != nil {
		errs = append(errs, f.api.Close())
	}
	for _, l := range f.allLinks() {
		l.close(context.Background())
	}
	f.tasks.Wait()
	f.streams.Wait()
	errs = append(errs, f.server.Collection.Clear())
	f.log.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the fault fabric: %w", err)
	}
	return nil
}

var errClosed = errors.New("the fault fabric is closed")
