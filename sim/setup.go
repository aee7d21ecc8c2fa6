package sim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

// How servers are set up in ways of their own, and what comes of it: what real processes do, see docs/findings.md and internal/cluster/local.

// errDistrusted ends a TLS handshake: nothing was delivered.
var errDistrusted = &netError{text: "tls: failed to verify certificate", undelivered: true}

// hindrance is a fault of how servers are set up that is on.
type hindrance struct {
	scenario.BlockedPath // empty for a fault of a server
	record               history.Fault
	asked                int
}

// checkSetups refuses what the simulator does not know the effect of.
func checkSetups(c *Case) error {
	check := func(server string, s *scenario.Setup) error {
		switch {
		case s == nil:
			return nil
		case s.HostnameOf != "":
			return fmt.Errorf("server %q cannot have the host name of %q in the simulator, which tells servers apart by their identities", server, s.HostnameOf)
		case s.EmulatedVersion != "" && c.emulated(s) == "":
			return fmt.Errorf("server %q, %s: the simulator knows what such a server serves by a release of that version in the plan, and there is none", server, s)
		case s.Proxy == scenario.On:
			return fmt.Errorf("server %q, %s: the simulator does not know what such a server does", server, s)
		}
		return nil
	}
	for _, server := range c.Servers {
		if err := check(server.Name, server.Setup); err != nil {
			return err
		}
	}
	for _, step := range c.Steps {
		if err := check(step.Server, step.Setup); err != nil {
			return err
		}
	}
	return nil
}

// emulated is the release of the case that a server with a setup emulates; "" if there is none.
func (c *Case) emulated(s *scenario.Setup) string {
	plan := scenario.Plan{Servers: c.Servers, Steps: c.Steps}
	all := plan.Versions()
	if i := slices.IndexFunc(all, s.Emulates); i >= 0 {
		return all[i]
	}
	return ""
}

// serves is what a server of a release serves. One that emulates another release serves what that one does, which is what emulation is to achieve. (A real one
// keeps subresources that resources of before have got since: upstream asks when the type was introduced. See shouldServeBasedOnVersionIntroduced in
// k8s.io/apiserver/pkg/server/deleted_kinds.go.) All else about it, its proxy too, is its own release's.
func (s *Simulator) serves(release string, setup *scenario.Setup) (*recorded.Version, error) {
	if setup.Like() != "" {
		release = s.of.emulated(setup)
	}
	return s.setup.Version(release)
}

// configureFirst sets up those that are first started with a setup of their own.
func (s *Simulator) configureFirst(servers []scenario.Server) {
	for i, srv := range s.servers {
		if srv.setup = servers[i].Setup; srv.setup != nil {
			s.setups[srv.name] = srv.setup
		}
	}
	for _, srv := range s.servers {
		if srv.setup != nil {
			s.suspect = true // what is looked at as it comes is looked at without regard to setups
			s.hinder(srv)
		}
	}
}

// configure sets a server that is not running up for its next start.
func (s *Simulator) configure(srv *server, setup *scenario.Setup) {
	s.relieve(srv)
	srv.setup, srv.refused = setup, false
	if setup == nil {
		delete(s.setups, srv.name)
	} else {
		s.setups[srv.name] = setup
	}
	s.suspect = s.suspect || setup != nil
	s.hinder(srv)
}

// applySetup makes the policy of a process that starts what its setup makes of it, and reports whether it starts at all.
func (srv *server) applySetup() bool {
	setup := srv.setup
	if setup == nil || !srv.on {
		return true
	}
	if setup.Proxy == scenario.Off {
		srv.on = false
		return true
	}
	if srv.sidecar() {
		return !refusedBySidecar(setup) || setup.PeerCA != scenario.TrustMissing && setup.Advertise == "" && srv.s.setup.believes()
	}
	if setup.PeerCA == scenario.TrustMissing || setup.Flags == scenario.FlagsKubeadm {
		srv.on = false // without --peer-ca-file upstream builds no proxy (CreateConfig in k8s.io/kubernetes, pkg/controlplane/apiserver)
	}
	return true
}

// sidecar reports whether the server's proxy is a sidecar process; see [Setup].
func (srv *server) sidecar() bool { return srv.on && srv.s.setup.Sidecar }

// refusedBySidecar is what a sidecar will not start with (proxy/sidecar, Options.Validate).
func refusedBySidecar(s *scenario.Setup) bool {
	switch {
	case s.PeerCA == scenario.TrustMissing:
	case s.Serving == scenario.CertificateExpired, s.Serving == scenario.CertificateOther:
	case s.FrontProxy == scenario.CertificateExpired, s.FrontProxy == scenario.CertificateStranger:
	case s.Advertise == scenario.AdvertiseIP, s.Advertise == scenario.AdvertisePort:
	default:
		return false
	}
	return true
}

// refuse ends a process that will not start with its setup.
func (srv *server) refuse() {
	s := srv.s
	srv.refused = true
	srv.phase = down
	srv.gate.Close()
	srv.lifecycle(history.StateStopping, "it refuses its configuration: "+srv.setup.String())
	srv.lifecycle(history.StateStopped, "")
	var distrust history.Distrust
	for i := len(s.hinders) - 1; i >= 0; i-- { // what it would have hindered it does not
		if h := s.hinders[i]; h.From == srv.name || h.To == srv.name || h.record.Server == srv.name {
			distrust = cmp.Or(distrust, h.record.Distrust)
			s.hinders = append(s.hinders[:i], s.hinders[i+1:]...)
		}
	}
	h := s.begin(history.FaultMisconfiguration, "refused to start, "+srv.setup.String())
	h.record.Server, h.record.Evidence.Refused, h.record.Distrust = srv.name, 1, distrust
	s.driver.wake()
}

// hinder begins what a server's setup hinders, beside what goes on.
func (s *Simulator) hinder(srv *server) {
	for _, m := range scenario.BlockedPaths(s.names, s.setups, srv.name) {
		if s.hindered(m.From, m.To) != nil {
			continue
		}
		h := s.begin(m.Obstacle.Fault(), m.Obstacle.String())
		h.BlockedPath = m
		h.record.From, h.record.To, h.record.Blocks = cmp.Or(m.From, fault.Client), m.To, true
		h.record.Distrust = m.Obstacle.Distrust()
		if m.Obstacle == scenario.Unadvertised || m.Obstacle == scenario.Unroutable {
			h.record.Evidence.Seen = 1 // its lease is as it is set up, here
		}
	}
	if kind, what := srv.setup.Wrong(); kind != "" {
		h := s.begin(kind, what)
		h.record.Server, h.asked = srv.name, s.asked[srv.index]
	}
}

func (s *Simulator) begin(kind, detail string) *hindrance {
	s.faults++
	h := &hindrance{record: history.Fault{ID: s.faults, Kind: kind, Detail: detail, Start: s.loop.Now()}}
	s.hinders = append(s.hinders, h)
	return h
}

// relieve ends what a server's setup hinders, with its record.
func (s *Simulator) relieve(srv *server) {
	var still []*hindrance
	for _, h := range s.hinders {
		if h.From != srv.name && h.To != srv.name && h.record.Server != srv.name {
			still = append(still, h)
			continue
		}
		h.record.End = s.loop.Now()
		if h.record.Server != "" {
			h.record.Evidence.Requests = s.asked[srv.index] - h.asked
		}
		s.history.Faults = append(s.history.Faults, h.record)
	}
	s.hinders = still
}

// hindered is what stands between two ends, by name, "" for clients; nil if nothing does.
func (s *Simulator) hindered(from, to string) *hindrance {
	for _, h := range s.hinders {
		if h.To == to && h.To != "" && h.From == from {
			return h
		}
	}
	return nil
}

// misfit is what stands in the way of a link.
func (s *Simulator) misfit(l *link) *hindrance {
	if len(s.hinders) == 0 || l.to >= len(s.servers) || l.from > len(s.servers) {
		return nil
	}
	from := ""
	if l.from < len(s.servers) {
		from = s.names[l.from]
	}
	return s.hindered(from, s.names[l.to])
}

// stumble lets a connection end at what stands in its way, and reports whether it does. A front proxy that is not allowed is let in: what it asks
// is refused.
func (s *Simulator) stumble(x *exchange) bool {
	h := s.misfit(x.link)
	if h != nil {
		h.record.Evidence.Affected++
	}
	if f, ok := x.requester.(*fetch); ok && f.q.astray {
		s.goAstray(x)
		return true
	}
	if h == nil {
		return false
	}
	switch h.Obstacle {
	case scenario.Distrusted:
		if h.From != "" && s.setup.believes() {
			return false
		}
		s.loop.After(s.latency(), nil, func() { x.broken(errDistrusted) })
	case scenario.Unroutable:
		s.goAstray(x)
	case scenario.NotAllowed:
		return false
	default:
		s.refuse(x)
	}
	return true
}

// goAstray lets an exchange dial where nobody is. What becomes of the server that it is meant for does not matter to it.
func (s *Simulator) goAstray(x *exchange) {
	x.link.inFlight = without(x.link.inFlight, x)
	s.giveUpAfter(x, dialTimeout, errDial)
}

// unauthorized answers what a server does that does not believe its peer's certificate, and reports whether it did.
func (s *Simulator) unauthorized(x *exchange) bool {
	if h := s.misfit(x.link); h == nil || h.Obstacle != scenario.NotAllowed || s.setup.believes() {
		return false
	}
	const body = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`
	x.said = append(x.said, body...)
	header := http.Header{"Content-Type": jsonHeader, "Content-Length": {itoa(len(body))}}
	x.back(headerBytes+len(body), part{status: http.StatusUnauthorized, header: header, said: len(body), ends: true})
	return true
}
