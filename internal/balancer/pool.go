package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The times are those of kind's ProxyCDSConfigTemplate; unhealthyAfter is its unhealthy_threshold.
const (
	connectTimeout = 250 * time.Millisecond
	checkTimeout   = 3 * time.Second
	checkInterval  = 2 * time.Second
	unhealthyAfter = 2
)

// pool is the backends and their health. Its methods may be called concurrently.
type pool struct {
	mu       sync.Mutex
	backends []backend
	next     int
	client   *http.Client
}

type backend struct {
	address string // host:port
	failed  int    // checks in a row; new ones count as unhealthy until the first check, as in Envoy
}

func (b backend) healthy() bool { return b.failed < unhealthyAfter }

func newPool() *pool {
	return &pool{client: &http.Client{
		Timeout: checkTimeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			// As kind's ACCEPT_UNTRUSTED: a check carries no secret, and the clients verify the
			// server themselves.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
	}}
}

// set replaces the backends; those that stay keep their health.
func (p *pool) set(addresses []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.EqualFunc(p.backends, addresses, func(b backend, a string) bool { return b.address == a }) {
		return
	}
	log.Printf("backends: %v", addresses)
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

// order is the backends in the order in which a new connection tries them: the healthy ones,
// beginning with the one whose turn it is; all of them if none is healthy (Envoy's panic mode).
func (p *pool) order() []string {
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

// dial connects to the first backend that can be connected to.
func (p *pool) dial(ctx context.Context) (net.Conn, error) {
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

func (p *pool) checkForever(ctx context.Context) {
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

// checkAll asks every backend once, at the same time.
func (p *pool) checkAll(ctx context.Context) {
	p.mu.Lock()
	backends := slices.Clone(p.backends)
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, b := range backends {
		wg.Go(func() { p.record(b.address, p.check(ctx, b.address)) })
	}
	wg.Wait()
}

func (p *pool) check(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New("/healthz says " + resp.Status)
	}
	return nil
}

func (p *pool) record(address string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.backends, func(b backend) bool { return b.address == address })
	if i < 0 {
		return
	}
	b := &p.backends[i]
	before := b.healthy()
	if err == nil {
		b.failed = 0
	} else {
		b.failed++
	}
	if b.healthy() != before {
		log.Printf("%s is healthy: %t (%v)", address, b.healthy(), err)
	}
}
