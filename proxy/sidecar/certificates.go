package sidecar

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
)

// loaded is a value that is read from files, and read again when they change. current is safe for
// concurrent use.
type loaded[T any] struct {
	what    string // the kind of certificate and its flags, for messages
	files   []string
	parse   func(contents [][]byte) (*T, error)
	read    [][]byte // the contents from which current was made
	failed  string   // the last logged error, "" after a success
	current atomic.Pointer[T]
}

// refresh reads the files and reports whether the value is new. Files that cannot be used do not
// change the value. An example is a new certificate whose key is not written yet.
func (l *loaded[T]) refresh() (bool, error) {
	contents := make([][]byte, len(l.files))
	for i, name := range l.files {
		var err error
		if contents[i], err = os.ReadFile(name); err != nil {
			return false, fmt.Errorf("read %s: %w", l.what, err)
		}
	}
	if slices.EqualFunc(contents, l.read, bytes.Equal) {
		return false, nil
	}
	value, err := l.parse(contents)
	if err != nil {
		return false, fmt.Errorf("read %s from %s: %w", l.what, strings.Join(l.files, " and "), err)
	}
	l.read = contents
	l.current.Store(value)
	return true, nil
}

// reload calls refresh, logs the result, and reports whether the value is new. It logs an error
// that stays the same only once.
func (l *loaded[T]) reload(log *slog.Logger) bool {
	changed, err := l.refresh()
	switch {
	case err == nil:
		l.failed = ""
	case l.failed != err.Error():
		l.failed = err.Error()
		log.Error("could not read again; keeping the last version", "what", l.what, "error", err)
	}
	if changed {
		log.Info("read again", "what", l.what)
	}
	return changed
}

// keyPair is a certificate with its private key.
type keyPair struct{ loaded[tls.Certificate] }

func loadKeyPair(what, certFile, keyFile string) (*keyPair, error) {
	k := &keyPair{loaded[tls.Certificate]{what: what, files: []string{certFile, keyFile}}}
	k.parse = func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		return &pair, err
	}
	if _, err := k.refresh(); err != nil {
		return nil, err
	}
	return k, nil
}

// leaf returns the certificate itself, without its intermediates.
func (k *keyPair) leaf() *x509.Certificate { return k.current.Load().Leaf }

// authorities is a bundle of certificate authorities. Nil means no authorities.
type authorities struct{ loaded[x509.CertPool] }

// loadAuthorities returns nil if file is empty.
func loadAuthorities(what, file string) (*authorities, error) {
	if file == "" {
		return nil, nil
	}
	a := &authorities{loaded[x509.CertPool]{what: what, files: []string{file}}}
	a.parse = func(contents [][]byte) (*x509.CertPool, error) { return cert.NewPoolFromBytes(contents[0]) }
	if _, err := a.refresh(); err != nil {
		return nil, err
	}
	return a, nil
}

// pool returns the present authorities; nil if there are none. A [tls.Config] uses the system's
// authorities for nil.
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

// credentials are the sidecar's own certificates and the authorities that it trusts.
type credentials struct {
	serving, proxyClient                          *keyPair
	sni                                           []namedKeyPair // in the order of the flags
	clientCA, requestHeaderCA, peerCA, upstreamCA *authorities
	changed                                       []func()
}

// watch reads the files at an interval until ctx ends, and calls the changed functions after a
// change. Polling is simpler than notifications, because files can be renamed, rewritten or linked.
func (c *credentials) watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	_ = wait.PollUntilContextCancel(ctx, every, false, func(context.Context) (bool, error) {
		anyChanged := c.serving.reload(log)
		anyChanged = c.proxyClient.reload(log) || anyChanged
		for _, k := range c.sni {
			anyChanged = k.reload(log) || anyChanged
		}
		for _, a := range []*authorities{c.clientCA, c.requestHeaderCA, c.peerCA, c.upstreamCA} {
			anyChanged = a != nil && a.reload(log) || anyChanged
		}
		for _, f := range c.changed {
			if anyChanged {
				f()
			}
		}
		return false, nil
	})
}
