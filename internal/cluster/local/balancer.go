package local

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/balancer"
	"github.com/skewproof/skewproof/internal/sandbox"
)

const (
	// balancerName is the context of the load balancer in kubeconfigs.
	balancerName = "balancer"
	// balancedFor is how long the load balancer keeps a connection to one server. Load balancers
	// close connections by age to spread the load. Otherwise a client of HTTP/2 stays with one
	// server.
	balancedFor = 3 * time.Second
)

// BalancerURL implements [cluster.Balancer].
func (*Cluster) BalancerURL() string { return "https://" + balancerAddress.String() }

// balance starts the load balancer over all servers, which uses the clients' links. It listens at
// two addresses: at one it closes connections by age, at the other it never closes them. Before its
// first connection it sends no requests to servers. end ends it.
func (c *Cluster) balance() (end func(), err error) {
	for _, own := range []netip.AddrPort{balancerAddress, steadyAddress} {
		if err := sandbox.Own(own.Addr()); err != nil {
			return nil, err
		}
	}
	output, err := os.OpenFile(c.config.Files.log(balancerName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the load balancer's log: %w", err)
	}
	lines := log.New(output, "", log.LUTC|log.Ldate|log.Lmicroseconds)
	checks, err := c.asAdmin() // servers may refuse anonymous requests
	if err != nil {
		return nil, errors.Join(err, output.Close())
	}
	pool := balancer.NewPool(checks, lines.Printf)
	pool.Refused = func(address string, err error) {
		c.config.Status("the load balancer counts the server at %s as unhealthy, and uses it only if no server is healthy: %v", address, err)
	}
	var backends []string
	for _, s := range c.Servers {
		backends = append(backends, s.place.Advertised.String())
	}
	pool.Set(backends)
	front, steady := &balancer.Front{Pool: pool, MaxAge: balancedFor}, &balancer.Front{Pool: pool}
	err = front.Listen(balancerAddress.String())
	if err == nil {
		err = steady.Listen(steadyAddress.String())
	}
	if err != nil {
		front.Close()
		_ = output.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var checking sync.WaitGroup
	checking.Go(func() { pool.Check(ctx) })
	return func() {
		front.Close()
		steady.Close()
		cancel()
		checking.Wait()
		_ = output.Close()
	}, nil
}
