package sidecar

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// frontProxies believes the identity headers of callers whose client certificate the request-header authorities signed for one of the
// allowed names; peers are among them. Source: k8s.io/apiserver, NewDynamicVerifyOptionsSecure, which verifies the chain of
// every request anew.
type frontProxies struct {
	ca      *authorities
	allowed []string // common names; empty: every one
	headers authenticator.Request
}

// AuthenticateRequest implements [authenticator.Request].
func (f *frontProxies) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if ok, err := f.verify(r); !ok {
		return nil, false, err
	}
	return f.headers.AuthenticateRequest(r)
}

// verify reports whether the caller is a front proxy. Not to be one, for want of any certificate, is no error.
func (f *frontProxies) verify(r *http.Request) (bool, error) {
	pool := f.ca.pool()
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || pool == nil {
		return false, nil
	}
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return f.verifyChain(r.TLS.PeerCertificates, pool).at(time.Now())
	}
	// A connection's certificate never changes (TLS 1.2 renegotiation is off), so the chain of a peer that sends
	// thousands of requests is verified once, until the authorities change or a certificate of the chain expires.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict.pool != pool || time.Now().After(c.verdict.until) {
		c.verdict = f.verifyChain(r.TLS.PeerCertificates, pool)
	}
	return c.verdict.at(time.Now())
}

// verdict is what became of verifying a chain.
type verdict struct {
	pool  *x509.CertPool // by which authorities
	until time.Time      // the first end of validity in the chain; zero where it was refused
	err   error
}

func (v verdict) at(now time.Time) (bool, error) {
	switch {
	case v.err != nil:
		return false, v.err
	case now.After(v.until):
		return false, errors.New("verify the front-proxy certificate: it has expired")
	}
	return true, nil
}

func (f *frontProxies) verifyChain(chain []*x509.Certificate, pool *x509.CertPool) verdict {
	options, _ := f.ca.verifyOptions()
	options.Roots = pool
	options.Intermediates = x509.NewCertPool()
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	chains, err := chain[0].Verify(options)
	if err != nil {
		return verdict{pool: pool, err: fmt.Errorf("verify the front-proxy certificate: %w", err)}
	}
	if name := chain[0].Subject.CommonName; len(f.allowed) > 0 && !slices.Contains(f.allowed, name) {
		return verdict{pool: pool, err: fmt.Errorf("verify the front-proxy certificate: its common name %q is not in --requestheader-allowed-names", name)}
	}
	until := chains[0][0].NotAfter
	for _, c := range chains[0] {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	return verdict{pool: pool, until: until}
}

// connection remembers what was found out about the other end of a connection.
type connection struct {
	mu      sync.Mutex
	verdict verdict
}

type connectionKey struct{}

// withConnection is for [http.Server.ConnContext].
func withConnection(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}
