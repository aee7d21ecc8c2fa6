package local

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/skewproof/skewproof/internal/cluster/lease"
	"github.com/skewproof/skewproof/internal/cluster/life"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Configure says how the next process of a server is set up; nil: as the subject says. It makes what that takes: certificates, and an address
// at which nobody is. The server must not be running.
func (c *Cluster) Configure(name string, setup *scenario.Setup) error {
	s, err := c.server(name)
	if err != nil {
		return err
	}
	s.Lock()
	defer s.Unlock()
	place := s.place
	place.Setup = setup
	if err := c.issue(place); err != nil {
		return fmt.Errorf("configure server %q: %w", name, err)
	}
	if a := place.setup().Advertise; a == scenario.AdvertiseWrong || a == scenario.AdvertiseIP {
		if err := s.lead(place.astray()); err != nil {
			return fmt.Errorf("configure server %q: %w", name, err)
		}
	}
	if err := s.host.Rename(place.hostname()); err != nil {
		return err
	}
	s.next = setup
	return nil
}

// lead makes an address at which nobody is, once.
func (s *server) lead(at netip.AddrPort) error {
	if s.astray != nil {
		return nil
	}
	if err := sandbox.Own(at.Addr()); err != nil {
		return err
	}
	var err error
	s.astray, err = newAstray(at, s.cluster.at)
	return err
}

// at is the server whose host has an address, "client" if none has.
func (c *Cluster) at(a netip.Addr) string {
	for _, p := range c.places {
		if p.Real.Addr() == a {
			return p.Name
		}
	}
	return fault.Client
}

// issue makes the certificates that a setup calls for, anew each time.
func (c *Cluster) issue(p Place) error {
	setup := p.setup()
	if setup.PeerCA == scenario.TrustStranger || setup.Serving == scenario.CertificateStranger || setup.FrontProxy == scenario.CertificateStranger {
		if err := c.authorities.meetStranger(c.config.Files.Keys); err != nil {
			return err
		}
	}
	if setup.Serving != "" {
		pair, err := c.authorities.unusual(c.authorities.servers, p.serving(), servingRequest(p), setup.Serving)
		if err != nil {
			return err
		}
		if err := c.ways.accept(pair.Cert); err != nil {
			return err
		}
	}
	if setup.FrontProxy != "" {
		if _, err := c.authorities.unusual(c.authorities.frontProxies, p.frontProxy(), frontProxyRequest(), setup.FrontProxy); err != nil {
			return err
		}
	}
	return nil
}

// Dialled is how many connections somebody (a server, or [fault.Client]) has made so far to where a server is, or says that it is.
func (c *Cluster) Dialled(from, to string) int {
	count := 0
	for _, d := range c.dials(to) {
		if d.From == from {
			count += d.Connections
		}
	}
	return count
}

// dials are all connections made so far to the addresses of a server, by who made them.
func (c *Cluster) dials(to string) []history.Dial {
	s, err := c.server(to)
	if err != nil {
		return nil
	}
	byFrom := map[string]history.Dial{}
	for _, l := range c.fabric.Links() {
		if n := l.Accepted + l.Refused; l.To == to && n > 0 {
			byFrom[l.From] = history.Dial{From: l.From, Address: s.place.Advertised.String(), Connections: n}
		}
	}
	var all []history.Dial
	for _, from := range slices.Sorted(maps.Keys(byFrom)) {
		all = append(all, byFrom[from])
	}
	s.Lock()
	defer s.Unlock()
	if s.astray == nil {
		return all
	}
	for _, p := range c.places {
		if n := s.astray.by(p.Name); n > 0 {
			all = append(all, history.Dial{From: p.Name, Address: s.place.astray().String(), Connections: n})
		}
	}
	return all
}

// seeing bounds how long the harness looks at what a configuration does.
const seeing = 5 * time.Second

// Effect is what the configuration of a server's present process is seen to do, to the extent that it can be seen. Dials are all so far,
// also those of processes before.
func (c *Cluster) Effect(ctx context.Context, name string) (history.Effect, error) {
	s, err := c.server(name)
	if err != nil {
		return history.Effect{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, seeing)
	defer cancel()
	place := s.present()
	seen := history.Effect{
		Server: name, Incarnation: c.Serving(name), At: c.config.Recorder.Now(), Setup: place.Setup.String(), Dials: c.dials(name),
	}
	var errs []error
	if seen.Incarnation != 0 {
		if shown, err := c.ways.shown(ctx, place.Real); err != nil {
			errs = append(errs, fmt.Errorf("look at the certificate that server %q shows: %w", name, err))
		} else {
			seen.Certificate = describe(shown)
		}
	}
	id := life.Identity(cmp.Or(place.setup().HostnameOf, name))
	client, err := c.etcdClient()
	if err != nil {
		return seen, errors.Join(append(errs, err)...)
	}
	defer client.CloseIdleConnections()
	if seen.Advertised, err = lease.Advertised(ctx, client, etcdReal.String(), id); err != nil {
		errs = append(errs, err)
	}
	return seen, errors.Join(errs...)
}

// shown is the certificate shown at an address.
func (w *ways) shown(ctx context.Context, at netip.AddrPort) (*x509.Certificate, error) {
	conn, err := (&tls.Dialer{Config: w.TLSClientConfig}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// describe is a certificate for people.
func describe(c *x509.Certificate) string {
	return fmt.Sprintf("%s by %s, no. %x, until %s", c.Subject, c.Issuer, c.SerialNumber, c.NotAfter.UTC().Format(time.RFC3339))
}

// checkShown finds out whether a server that was given a certificate of its own shows that one: otherwise the run would be about nothing.
func (s *server) checkShown(ctx context.Context, p Place) error {
	if p.setup().Serving == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, seeing)
	defer cancel()
	shown, err := s.cluster.ways.shown(ctx, p.Real)
	if err != nil {
		return fmt.Errorf("look at the certificate that server %q shows: %w", p.Name, err)
	}
	given, err := cert.CertsFromFile(s.cluster.config.Files.key(p.serving() + ".crt"))
	if err != nil {
		return fmt.Errorf("look at the certificate that server %q was given: %w", p.Name, err)
	}
	if !shown.Equal(given[0]) {
		return fmt.Errorf("server %q shows %s, and not the certificate that it was given, %s", p.Name, describe(shown), describe(given[0]))
	}
	return nil
}
