// Package balancer forwards TCP connections to healthy backends in turn, like the load balancer of
// a highly available control plane.
package balancer

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The times are from kind's ProxyCDSConfigTemplate; unhealthyAfter is its unhealthy_threshold.
const (
	connectTimeout = 250 * time.Millisecond
	checkTimeout   = 3 * time.Second
	checkInterval  = 2 * time.Second
	unhealthyAfter = 2
)

//go:embed pool.go front.go
var sources embed.FS

// Sources returns the files of this package. Images that contain the package are built again when a
// file changes.
func Sources() embed.FS { return sources }

// Pool has the backends and their health. Create it with [NewPool]. Its methods are safe for
// concurrent use.
type Pool struct {
	// Refused is called when a backend begins to refuse checks as those of a client without rights,
	// so that its health cannot be known. nil means no call. It must be set before [Pool.Check].
	Refused func(address string, err error)

	client *http.Client
	logf   func(format string, args ...any)
	used   chan struct{} // closed at the first connection
	use    sync.Once

	mu       sync.Mutex
	backends []backend
	next     int
}

type backend struct {
	address string // host:port
	failed  int    // failed checks in a row; a new backend counts as unhealthy until its first check, as in Envoy
	checked bool
	refused bool // its last check was refused
}

func (b backend) healthy() bool { return b.failed < unhealthyAfter }

// NewPool returns a pool without backends. Checks use the transport, with its credentials. If the
// transport has no keep-alives, each check makes a new connection. logf writes lines for people.
func NewPool(transport http.RoundTripper, logf func(format string, args ...any)) *Pool {
	return &Pool{client: &http.Client{Timeout: checkTimeout, Transport: transport}, logf: logf, used: make(chan struct{})}
}

// Set replaces the backends, each host:port. Backends that were there before keep their health.
func (p *Pool) Set(addresses []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.EqualFunc(p.backends, addresses, func(b backend, a string) bool { return b.address == a }) {
		return
	}
	p.logf("backends: %v", addresses)
	old := p.backends
	p.backends = nil
	for _, a := range addresses {
		b := backend{address: a, failed: unhealthyAfter}
		if i := slices.IndexFunc(old, func(o backend) bool { return o.address == a }); i >= 0 {
			b = old[i]
		}
		p.backends = append(p.backends, b)
	}
}

// order returns the backends in the order in which a new connection tries them. These are the
// healthy ones, beginning with the next in turn, or all backends if none is healthy (Envoy's panic
// mode).
func (p *Pool) order() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var usable, all []string
	for i := range p.backends {
		b := p.backends[(p.next+i)%len(p.backends)]
		all = append(all, b.address)
		if b.healthy() {
			usable = append(usable, b.address)
		}
	}
	p.next++
	if len(usable) == 0 {
		return all
	}
	return usable
}

// dial connects to the first backend that accepts a connection.
func (p *Pool) dial(ctx context.Context) (net.Conn, error) {
	p.use.Do(func() { close(p.used) })
	errs := []error{errors.New("no backend can be connected to")}
	dialer := net.Dialer{Timeout: connectTimeout}
	for _, address := range p.order() {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Check checks every backend repeatedly until ctx ends: GET /readyz must answer 200. A
// kube-apiserver fails it as soon as it is told to stop, while it serves on
// (--shutdown-delay-duration). The checks start at the first connection.
func (p *Pool) Check(ctx context.Context) {
	select {
	case <-p.used:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		p.checkAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// checkAll checks all backends once, at the same time.
func (p *Pool) checkAll(ctx context.Context) {
	p.mu.Lock()
	backends := slices.Clone(p.backends)
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, b := range backends {
		wg.Go(func() { p.record(b.address, p.check(ctx, b.address)) })
	}
	wg.Wait()
}

func (p *Pool) check(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: /readyz says %s", errRefused, resp.Status)
	default:
		return errors.New("/readyz says " + resp.Status)
	}
}

// errRefused means that a backend does not tell this client whether it is healthy.
var errRefused = errors.New("the check of its health is refused")

func (p *Pool) record(address string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.backends, func(b backend) bool { return b.address == address })
	if i < 0 {
		return
	}
	b := &p.backends[i]
	before, known, refused := b.healthy(), b.checked, b.refused
	b.checked, b.refused = true, errors.Is(err, errRefused)
	if err == nil {
		b.failed = 0
	} else {
		b.failed++
	}
	if b.healthy() != before || !known {
		p.logf("%s is healthy: %t (%v)", address, b.healthy(), err)
	}
	if b.refused && !refused && p.Refused != nil {
		p.Refused(address, err)
	}
}
