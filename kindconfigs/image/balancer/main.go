// Command balancer stands in for Envoy in front of kind's control plane where Envoy's image cannot
// be pulled. It is started as kind starts Envoy ("envoy -c FILE"), reads the two files that kind
// writes for Envoy (pkg/cluster/internal/loadbalancer of kind 0.33), follows their changes, and
// passes TCP connections on to the healthy backends in turn. It knows nothing else of Envoy's.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/balancer"
)

// rereadInterval is how soon a change of kind's files is seen.
const rereadInterval = 200 * time.Millisecond

func main() {
	log.SetFlags(log.LUTC | log.Ldate | log.Lmicroseconds)
	file := flag.String("c", "/home/envoy/envoy.yaml", "Envoy's own file; lds.yaml and cds.yaml are read beside it")
	flag.Parse()
	log.Print("this is skewproof's stand-in for Envoy, see kindconfigs/image/balancer")

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, filepath.Dir(*file)); err != nil {
		log.Fatal(err)
	}
}

// checks verifies no certificate, as kind's ACCEPT_UNTRUSTED: a check carries no secret, and the
// clients verify the server themselves.
func checks() http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
}

// run follows the files in dir until ctx ends.
func run(ctx context.Context, dir string) error {
	pool := balancer.NewPool(checks(), log.Printf)
	go pool.Check(ctx)
	front := &balancer.Front{Pool: pool}
	defer front.Close()
	ticker := time.NewTicker(rereadInterval)
	defer ticker.Stop()
	last := ""
	for {
		c, err := readConfig(dir)
		switch {
		case err != nil && err.Error() != last:
			last = err.Error()
			log.Printf("the files are not used: %v", err)
		case err == nil:
			last = ""
			pool.Set(c.backends)
			if err := front.Listen(c.listen); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
