package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lease"
	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Configure gives the next incarnation of a server a setup, or none if setup is nil. It makes the
// certificates, the decoy and the addresses of all servers that the setup needs. The server must
// not be running.
func (c *Cluster) Configure(name string, setup *scenario.Setup) error {
	s, err := c.Find(name)
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
	if a := place.setup().Advertise; (a == scenario.AdvertiseWrong || a == scenario.AdvertiseIP) && s.decoy == nil {
		if err := sandbox.Own(place.decoy().Addr()); err != nil {
			return fmt.Errorf("configure server %q: %w", name, err)
		}
		if s.decoy, err = newDecoy(place.decoy(), c.sourceAt); err != nil {
			return fmt.Errorf("configure server %q: %w", name, err)
		}
	}
	if err := s.host.Rename(place.hostname()); err != nil {
		return err
	}
	s.Server.Configure(setup)
	return nil
}

// sourceAt is the server whose host has an address, or [fault.Client] if no server has it.
func (c *Cluster) sourceAt(a netip.Addr) string {
	for _, s := range c.Servers {
		if s.place.Real.Addr() == a {
			return s.Name
		}
	}
	return fault.Client
}

// issue makes the certificates that a setup needs, new ones each time.
func (c *Cluster) issue(p Place) error {
	setup := p.setup()
	if setup.PeerCA == scenario.TrustStranger || setup.Serving == scenario.CertificateStranger ||
		setup.FrontProxy == scenario.CertificateStranger {
		if err := c.authorities.makeStranger(c.config.Files.Keys); err != nil {
			return err
		}
	}
	if setup.Serving != "" {
		pair, err := c.authorities.issueVariant(c.authorities.servers, p.serving(), servingRequest(p), setup.Serving)
		if err != nil {
			return err
		}
		if err := c.admin.accept(pair.Cert); err != nil {
			return err
		}
	}
	if setup.FrontProxy != "" {
		if _, err := c.authorities.issueVariant(c.authorities.frontProxies, p.frontProxy(), frontProxyRequest(), setup.FrontProxy); err != nil {
			return err
		}
	}
	return nil
}

// Dialled is how many connections a server or [fault.Client] has made so far to a server, at its
// real address or at the address that it advertises.
func (c *Cluster) Dialled(from, to string) int {
	count := 0
	for _, d := range c.dials(to) {
		if d.From == from {
			count += d.Connections
		}
	}
	return count
}

func (c *Cluster) dials(to string) []history.Dial {
	s, err := c.Find(to)
	if err != nil {
		return nil
	}
	all := c.fabric.Dials(to, s.place.Advertised.String())
	s.Lock()
	defer s.Unlock()
	if s.decoy == nil {
		return all
	}
	for _, from := range c.Servers {
		if n := s.decoy.dialledBy(from.Name); n > 0 {
			all = append(all, history.Dial{From: from.Name, Address: s.place.decoy().String(), Connections: n})
		}
	}
	return all
}

const effectTimeout = 5 * time.Second

// Effect is the visible effect of the configuration of a server's present incarnation. Dials are
// all so far, including those of earlier incarnations.
func (c *Cluster) Effect(ctx context.Context, name string) (history.Effect, error) {
	s, err := c.Find(name)
	if err != nil {
		return history.Effect{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	place := s.withSetup()
	seen := history.Effect{
		Server: name, Incarnation: c.Serving(name), At: c.config.Recorder.Now(), Setup: place.Setup.String(), Dials: c.dials(name),
	}
	var errs []error
	if seen.Incarnation != 0 {
		shown, err := c.admin.certificateAt(ctx, place.Real)
		if err == nil {
			seen.Certificate = describe(shown)
		}
		errs = append(errs, err)
	}
	seen.Advertised, err = c.Advertised(ctx, name)
	return seen, errors.Join(append(errs, err)...)
}

// Advertised implements [cluster.Advertiser].
func (c *Cluster) Advertised(ctx context.Context, name string) (string, error) {
	s, err := c.Find(name)
	if err != nil {
		return "", err
	}
	gateway, err := c.gateway()
	if err != nil {
		return "", err
	}
	id := lifecycle.Identity(cmp.Or(s.withSetup().setup().HostnameOf, name))
	return lease.Advertised(ctx, gateway, id)
}
