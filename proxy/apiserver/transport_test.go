package apiserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener on which connections in memory arrive.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// muffled loses what a peer sends, once it is stopped.
type muffled struct {
	net.Conn
	stopped *atomic.Bool
}

func (m muffled) Read(p []byte) (int, error) {
	for {
		n, err := m.Conn.Read(p)
		if !m.stopped.Load() || err != nil {
			return n, err
		}
	}
}

// A peer that answers late is waited for. A peer that sends nothing at all is given up.
func TestADeadPeerIsToldFromASlowOne(t *testing.T) {
	for name, dead := range map[string]bool{"slow": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p, _ := w.installed(t)
			synctest.Test(t, func(t *testing.T) {
				var stopped atomic.Bool
				arriving := make(pipes)
				p.transport.dial = func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					arriving <- there
					return muffled{here, &stopped}, nil
				}
				peer := &http.Server{TLSConfig: w.peer.TLS.Clone(), Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					stopped.Store(dead)
					select {
					case <-time.After(40 * time.Second):
					case <-r.Context().Done():
					}
				})}
				go func() { _ = peer.ServeTLS(arriving, "", "") }()
				defer func() {
					p.transport.CloseIdleConnections()
					peer.Close()
				}()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://192.0.2.2:6443"+gadgets, nil)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				answer, err := p.transport.RoundTrip(r)
				took := time.Since(began)
				switch {
				case dead && (!errors.Is(err, os.ErrDeadlineExceeded) || took != w.options.Policy.Routing.Silence):
					t.Errorf("%v after %s, want that it is given up after %s", err, took, w.options.Policy.Routing.Silence)
				case !dead && err != nil:
					t.Errorf("given up after %s: %v", took, err)
				case !dead:
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			})
		})
	}
}
