#!/usr/bin/env bash
# toxiproxy v2.12.0: on one stream, a "latency" that comes after a "bandwidth" adds nothing to data
# that the bandwidth has held back for as long. The latency counts from the instant at which the
# proxy has read a chunk, and not from the instant at which the toxic gets it. In the other order
# the two times add up. So the same two toxics give different times, by the order in which they were
# added.
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

const (
	bandwidth = `{"type":"bandwidth","stream":"upstream","attributes":{"rate":10}}` // 10 kB a second
	latency   = `{"type":"latency","stream":"upstream","attributes":{"latency":500}}`
)

// took returns how long 10 kB take to arrive.
func took(toxics ...string) time.Duration {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer upstream.Close()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "p", "127.0.0.1:0", upstream.Addr().String())
	must(proxy.Start())
	defer proxy.Stop()
	for _, t := range toxics {
		_, err := proxy.Toxics.AddToxicJson(strings.NewReader(t))
		must(err)
	}
	conn, err := net.Dial("tcp", proxy.Listen)
	must(err)
	defer conn.Close()
	far, err := upstream.Accept()
	must(err)
	defer far.Close()
	began := time.Now()
	_, err = conn.Write(make([]byte, 10_000))
	must(err)
	_, err = io.ReadFull(far, make([]byte, 10_000))
	must(err)
	return time.Since(began).Round(50 * time.Millisecond)
}

func main() {
	after, before := took(bandwidth, latency), took(latency, bandwidth)
	fmt.Printf("10 kB at 10 kB/s with 500 ms: bandwidth, then latency: %s; latency, then bandwidth: %s\n", after, before)
	if after > 1250*time.Millisecond || before < 1400*time.Millisecond {
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
