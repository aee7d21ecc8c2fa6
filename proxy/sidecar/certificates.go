package sidecar

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/cert"
)

// keyPair is a certificate with its private key, in two files. It is safe for concurrent use.
type keyPair struct {
	what              string // for people: what the certificate is, and by which flags it is given
	certFile, keyFile string
	certPEM, keyPEM   []byte // what was read last; of refresh alone
	current           atomic.Pointer[tls.Certificate]
}

func loadKeyPair(what, certFile, keyFile string) (*keyPair, error) {
	k := &keyPair{what: what, certFile: certFile, keyFile: keyFile}
	if _, err := k.refresh(); err != nil {
		return nil, err
	}
	return k, nil
}

// refresh reads the files and reports whether what they hold is new. What cannot be used, a certificate whose key is not there yet
// among it, changes nothing.
func (k *keyPair) refresh() (bool, error) {
	certPEM, err := os.ReadFile(k.certFile)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", k.what, err)
	}
	keyPEM, err := os.ReadFile(k.keyFile)
	if err != nil {
		return false, fmt.Errorf("read the key of %s: %w", k.what, err)
	}
	if bytes.Equal(certPEM, k.certPEM) && bytes.Equal(keyPEM, k.keyPEM) {
		return false, nil
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return false, fmt.Errorf("read %s from %s and %s: %w", k.what, k.certFile, k.keyFile, err)
	}
	k.certPEM, k.keyPEM = certPEM, keyPEM
	k.current.Store(&pair)
	return true, nil
}

// leaf is the certificate itself, without its intermediates.
func (k *keyPair) leaf() *x509.Certificate { return k.current.Load().Leaf }

// authorities is a bundle of certificate authorities in a file. It is safe for concurrent use.
type authorities struct {
	what, file string
	pem        []byte // what was read last; of refresh alone
	current    atomic.Pointer[x509.CertPool]
}

// loadAuthorities returns nil, which stands for none, when no file is named.
func loadAuthorities(what, file string) (*authorities, error) {
	if file == "" {
		return nil, nil
	}
	a := &authorities{what: what, file: file}
	if _, err := a.refresh(); err != nil {
		return nil, err
	}
	return a, nil
}

// refresh reads the file and reports whether it holds other authorities. A file without any changes nothing.
func (a *authorities) refresh() (bool, error) {
	if a == nil {
		return false, nil
	}
	pem, err := os.ReadFile(a.file)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", a.what, err)
	}
	if bytes.Equal(pem, a.pem) {
		return false, nil
	}
	pool, err := cert.NewPoolFromBytes(pem)
	if err != nil {
		return false, fmt.Errorf("read %s from %s: %w", a.what, a.file, err)
	}
	a.pem = pem
	a.current.Store(pool)
	return true, nil
}

// pool returns the present authorities; nil for none, which [tls.Config] takes for those of the system.
func (a *authorities) pool() *x509.CertPool {
	if a == nil {
		return nil
	}
	return a.current.Load()
}

// verifyOptions is an x509request.VerifyOptionFunc for client certificates.
func (a *authorities) verifyOptions() (x509.VerifyOptions, bool) {
	pool := a.pool()
	return x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, pool != nil
}

// credentials are all that the sidecar proves itself by and believes others by.
type credentials struct {
	serving, proxyClient                          *keyPair
	clientCA, requestHeaderCA, peerCA, upstreamCA *authorities
	changed                                       []func()
}

// watch reads the files again every so often and calls the changed functions after a change, until ctx ends. Reading a few small files is
// cheaper than it is to get the notifications of every way of replacing files right (renamed, rewritten, links swapped).
func (c *credentials) watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	told := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.refresh(told, log)
		}
	}
}

func (c *credentials) refresh(told map[string]string, log *slog.Logger) {
	anything := false
	look := func(what string, refresh func() (bool, error)) {
		changed, err := refresh()
		switch {
		case err != nil && told[what] != err.Error():
			told[what] = err.Error()
			log.Error("keeping what was read before", "of", what, "error", err)
		case err == nil:
			delete(told, what)
		}
		if changed {
			anything = true
			log.Info("read again", "what", what)
		}
	}
	for _, k := range []*keyPair{c.serving, c.proxyClient} {
		look(k.what, k.refresh)
	}
	for _, a := range []*authorities{c.clientCA, c.requestHeaderCA, c.peerCA, c.upstreamCA} {
		if a != nil {
			look(a.what, a.refresh)
		}
	}
	if anything {
		for _, f := range c.changed {
			f()
		}
	}
}
