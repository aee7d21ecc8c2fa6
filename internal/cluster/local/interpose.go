package local

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/interpose"
)

// interposers are the programs between servers and their peers, by server. The zero value is ready
// for use.
type interposers struct {
	mu  sync.Mutex
	all map[string]*interposed
}

type interposed struct {
	*interpose.Interposer
	paths map[string]bool // of the broken documents
	end   func()          // ends the redirection of the peers; nil while there is none
}

// BreakDiscovery makes peers' fetches of a discovery document (/api or /apis) of a server fail in
// that way, until [Cluster.RestoreDiscovery]. New connections of peers go through a program that
// has the server's keys. Open connections are reset.
func (c *Cluster) BreakDiscovery(name, path string, how fault.DiscoveryFailure) error {
	s, err := c.Find(name)
	if err != nil {
		return err
	}
	c.interposers.mu.Lock()
	defer c.interposers.mu.Unlock()
	on := c.interposers.all[name]
	if on == nil {
		interposer, err := interpose.New(c.interposerConfig(s))
		if err != nil {
			return fmt.Errorf("let %s of server %q fail: %w", path, name, err)
		}
		if c.interposers.all == nil {
			c.interposers.all = map[string]*interposed{}
		}
		on = &interposed{Interposer: interposer, paths: map[string]bool{}}
		c.interposers.all[name] = on
	}
	on.BreakDiscovery(path, how)
	on.paths[path] = true
	if on.end == nil {
		if on.end, err = c.fabric.Detour(name, on.Address()); err != nil {
			return fmt.Errorf("let %s of server %q fail: %w", path, name, err)
		}
	}
	return nil
}

// RestoreDiscovery makes the fetches succeed again, and returns how many have failed.
func (c *Cluster) RestoreDiscovery(name, path string) (failed int, err error) {
	c.interposers.mu.Lock()
	defer c.interposers.mu.Unlock()
	on := c.interposers.all[name]
	if on == nil || !on.paths[path] {
		return 0, fmt.Errorf("restore %s of server %q: it is not broken", path, name)
	}
	failed = on.RestoreDiscovery(path)
	delete(on.paths, path)
	if len(on.paths) == 0 {
		on.end()
		on.end = nil
	}
	return failed, nil
}

func (c *Cluster) interposerConfig(s *server) interpose.Config {
	f := c.config.Files
	pair := func(name string) (*tls.Certificate, error) {
		certificate, err := tls.LoadX509KeyPair(f.key(name+".crt"), f.key(name+".key"))
		return &certificate, err
	}
	return interpose.Config{
		Real: s.place.Real, Name: peerName,
		Serving:    func() (*tls.Certificate, error) { return pair(s.withSetup().serving()) },
		ServingCA:  c.pool("ca"),
		FrontProxy: func() (*tls.Certificate, error) { return pair(frontProxyName) }, FrontProxyCA: c.pool("front-proxy-ca"),
		FrontProxyName: frontProxyName,
	}
}

// peerName is the name under which peers verify a server's certificate.
const peerName = "kubernetes.default.svc"

// pool holds an authority of the run. If the authority cannot be read, the pool is empty and
// handshakes fail.
func (c *Cluster) pool(authority string) *x509.CertPool {
	pool := x509.NewCertPool()
	if content, err := os.ReadFile(c.config.Files.key(authority + ".crt")); err == nil {
		pool.AppendCertsFromPEM(content)
	}
	return pool
}

func (s *interposers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, on := range s.all {
		on.Close()
	}
}
