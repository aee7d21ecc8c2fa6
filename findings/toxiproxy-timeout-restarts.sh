#!/usr/bin/env bash
# toxiproxy v2.12.0: the toxic "timeout" closes a connection that long after its last byte, and not
# that long after the toxic begins to hold data back. A connection that goes on sending is never
# closed, although none of its bytes arrives. The README of toxiproxy says only that the toxic "stops
# all data from getting through, and closes the connection after timeout".
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

const timeout = 500 * time.Millisecond

func main() {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	arrived := make(chan int64, 2)
	go func() {
		for {
			conn, err := upstream.Accept()
			if err != nil {
				return
			}
			go func() { n, _ := io.Copy(io.Discard, conn); arrived <- n; conn.Close() }()
		}
	}()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "p", "127.0.0.1:0", upstream.Addr().String())
	must(proxy.Start())
	_, err = proxy.Toxics.AddToxicJson(strings.NewReader(
		fmt.Sprintf(`{"type":"timeout","stream":"upstream","attributes":{"timeout":%d}}`, timeout.Milliseconds())))
	must(err)

	// closedAfter dials, sends a byte every 100 ms for a while, and returns when the connection ended.
	closedAfter := func(sending time.Duration) time.Duration {
		conn, err := net.Dial("tcp", proxy.Listen)
		must(err)
		defer conn.Close()
		began := time.Now()
		ended := make(chan time.Duration)
		go func() { _, _ = io.Copy(io.Discard, conn); ended <- time.Since(began) }()
		for time.Since(began) < sending {
			_, _ = conn.Write([]byte("x"))
			time.Sleep(100 * time.Millisecond)
		}
		return <-ended
	}
	quiet, busy := closedAfter(time.Millisecond), closedAfter(3*time.Second)
	bytes := <-arrived + <-arrived
	fmt.Printf("timeout %s: one byte at the start: closed after %s; a byte every 100 ms for 3 s: closed after %s; %d bytes arrived\n",
		timeout, quiet.Round(10*time.Millisecond), busy.Round(10*time.Millisecond), bytes)
	if quiet > 2*time.Second || busy < 3*time.Second || bytes != 0 {
		fmt.Println("CHANGED")
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
EOF
go mod init example.org/finding >/dev/null 2>&1
go get github.com/Shopify/toxiproxy/v2@v2.12.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go list -m github.com/Shopify/toxiproxy/v2
go run .
