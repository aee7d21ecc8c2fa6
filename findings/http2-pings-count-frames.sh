#!/usr/bin/env bash
# golang.org/x/net v0.62.0: http2.Transport's ReadIdleTimeout counts whole frames, not bytes. On a
# link so slow that one DATA frame takes longer than ReadIdleTimeout and PingTimeout together, the
# answer to the ping waits behind that frame, and the transport closes the connection, with every
# request on it, although bytes arrive all the time. The same bytes at the same speed in small frames
# arrive in full. client-go sets both timeouts by default.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// One frame of 16 KiB, the largest by default, takes four seconds.
const (
	perSecond = 4 << 10
	body      = 24 << 10
)

func main() {
	server := httptest.NewServer(h2c.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, body)
		if r.URL.Path == "/small" {
			piece = piece[:1<<10]
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		for sent := 0; sent < body; sent += len(piece) {
			_, _ = w.Write(piece)
			w.(http.Flusher).Flush()
		}
	}), &http2.Server{}))
	defer server.Close()
	link, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() {
		for {
			client, err := link.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server.Listener.Addr().String())
			must(err)
			go func() { _, _ = io.Copy(behind, client); behind.Close() }()
			go func() {
				defer client.Close()
				b := make([]byte, perSecond/10)
				for {
					n, err := behind.Read(b)
					if err != nil {
						return
					}
					if _, err := client.Write(b[:n]); err != nil {
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
			}()
		}
	}()
	ends := map[string]bool{}
	for _, path := range []string{"/small", "/large"} {
		for _, ping := range []time.Duration{0, time.Second} {
			var last time.Time
			var longest time.Duration
			transport := &http2.Transport{
				AllowHTTP: true, ReadIdleTimeout: ping, PingTimeout: time.Second,
				DialTLSContext: func(ctx context.Context, network, _ string, _ *tls.Config) (net.Conn, error) {
					c, err := (&net.Dialer{}).DialContext(ctx, network, link.Addr().String())
					return &counted{Conn: c, seen: func(at time.Time) {
						if !last.IsZero() {
							longest = max(longest, at.Sub(last))
						}
						last = at
					}}, err
				},
			}
			began := time.Now()
			r, err := (&http.Client{Transport: transport}).Get("http://example.org" + path)
			must(err)
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Printf("frames as in %s, ReadIdleTimeout %s: %d of %d bytes after %.0f s, never more than %s without one: %v\n",
				path, ping, n, body, time.Since(began).Seconds(), longest.Round(100*time.Millisecond), err)
			ends[fmt.Sprint(path, ping)] = err == nil && n == body
			transport.CloseIdleConnections()
		}
	}
	if !ends["/small0s"] || !ends["/small1s"] || !ends["/large0s"] || ends["/large1s"] {
		fmt.Println("CHANGED")
		os.Exit(1)
	}
}

// counted tells when bytes arrive.
type counted struct {
	net.Conn
	seen func(time.Time)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.seen(time.Now())
	return n, err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
EOF
go mod init example.org/finding >/dev/null 2>&1
go get golang.org/x/net@v0.62.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go list -m golang.org/x/net
go run .
