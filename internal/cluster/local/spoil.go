package local

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"

	"github.com/skewproof/skewproof/internal/spoil"
)

// spoilers are those who stand between servers and their peers, by server. The zero value is ready for use.
type spoilers struct {
	mu  sync.Mutex
	all map[string]*spoiled
}

// spoiled is a server with a spoiler in front of it.
type spoiled struct {
	*spoil.Spoiler
	paths map[string]bool
	end   func() // of the detour; nil while there is none
}

// Spoil lets fetches of a discovery document (/api or /apis) of a server by its peers fail in that manner, until [Cluster.Mend]. To that end what
// peers dial is led through a program that has the server's keys; connections that are open are reset.
func (c *Cluster) Spoil(name, path string, manner spoil.Manner) error {
	s, err := c.server(name)
	if err != nil {
		return err
	}
	c.spoilers.mu.Lock()
	defer c.spoilers.mu.Unlock()
	on := c.spoilers.all[name]
	if on == nil {
		spoiler, err := spoil.New(c.standingIn(s))
		if err != nil {
			return fmt.Errorf("let %s of server %q fail: %w", path, name, err)
		}
		if c.spoilers.all == nil {
			c.spoilers.all = map[string]*spoiled{}
		}
		on = &spoiled{Spoiler: spoiler, paths: map[string]bool{}}
		c.spoilers.all[name] = on
	}
	on.Spoil(path, manner)
	on.paths[path] = true
	if on.end == nil {
		if on.end, err = c.fabric.Detour(name, on.Address()); err != nil {
			return fmt.Errorf("let %s of server %q fail: %w", path, name, err)
		}
	}
	return nil
}

// Mend lets the fetches succeed again, and returns how many have failed. Connections that are open stay as they are.
func (c *Cluster) Mend(name, path string) (failed int, err error) {
	c.spoilers.mu.Lock()
	defer c.spoilers.mu.Unlock()
	on := c.spoilers.all[name]
	if on == nil || !on.paths[path] {
		return 0, fmt.Errorf("mend %s of server %q: it is not spoilt", path, name)
	}
	failed = on.Mend(path)
	delete(on.paths, path)
	if len(on.paths) == 0 {
		on.end()
		on.end = nil
	}
	return failed, nil
}

// standingIn is how a spoiler stands in front of a server.
func (c *Cluster) standingIn(s *server) spoil.Config {
	f := c.config.Files
	pair := func(name string) (*tls.Certificate, error) {
		certificate, err := tls.LoadX509KeyPair(f.key(name+".crt"), f.key(name+".key"))
		return &certificate, err
	}
	return spoil.Config{
		Real: s.place.Real, Name: peerName,
		Serving:    func() (*tls.Certificate, error) { return pair(s.present().serving()) },
		ServingCA:  c.pool("ca"),
		FrontProxy: func() (*tls.Certificate, error) { return pair("front-proxy-client") }, FrontProxyCA: c.pool("front-proxy-ca"),
	}
}

// peerName is the name under which peers verify a server's certificate.
const peerName = "kubernetes.default.svc"

// pool is an authority of the run. One that cannot be read trusts nobody, which the first handshake shows.
func (c *Cluster) pool(authority string) *x509.CertPool {
	pool := x509.NewCertPool()
	if content, err := os.ReadFile(c.config.Files.key(authority + ".crt")); err == nil {
		pool.AppendCertsFromPEM(content)
	}
	return pool
}

func (s *spoilers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, on := range s.all {
		on.Close()
	}
}
