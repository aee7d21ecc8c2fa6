package sim

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

// This file has the effects of servers' setups. They are those of real processes; see
// docs/findings.md and internal/cluster/local.

// errDistrusted is the error of a TLS handshake that fails because of a certificate. The request
// was not delivered.
var errDistrusted = &netError{text: "tls: failed to verify certificate", undelivered: true}

// checkSetups rejects setups whose effect the simulator does not know.
func checkSetups(c *Case) error {
	check := func(server string, s *scenario.Setup) error {
		switch {
		case s == nil:
			return nil
		case s.HostnameOf != "":
			return fmt.Errorf("server %q cannot have the host name of %q in the simulator, which distinguishes servers by their identities", server,
				s.HostnameOf)
		case s.EmulatedVersion != "" && c.emulated(s) == "":
			return fmt.Errorf("server %q, %s: the simulator knows what such a server serves by a release of that version in the plan, but the plan has none", server, s)
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

// emulated returns the release of the case that a server with this setup emulates; "" if there is
// none.
func (c *Case) emulated(s *scenario.Setup) string {
	plan := scenario.Plan{Servers: c.Servers, Steps: c.Steps}
	all := plan.Versions()
	if i := slices.IndexFunc(all, s.Emulates); i >= 0 {
		return all[i]
	}
	return ""
}

// serves returns the resources of a server of a release. With an emulated version, these are the
// resources of the emulated release, without the APIs that are switched off in its own. (A real
// server keeps newer subresources of older resources: see shouldServeBasedOnVersionIntroduced in
// k8s.io/apiserver/pkg/server/deleted_kinds.go.) Everything else, including the proxy, is that of
// the server's own release.
func (s *Simulator) serves(version string, setup *scenario.Setup) (*recorded.Version, error) {
	if setup.Like() == "" {
		return s.setup.Version(version)
	}
	own, err := release.Parse(version)
	if err != nil {
		return nil, err
	}
	emulated := release.Release{Version: release.Of(s.of.emulated(setup))}
	whole, err := s.setup.Version(emulated.Version)
	if err != nil {
		return nil, err
	}
	for _, w := range own.Without {
		if slices.ContainsFunc(whole.Document.Resources, func(r history.Resource) bool { return r.Group+"/"+r.Version == w }) {
			emulated.Without = append(emulated.Without, w)
		}
	}
	return s.setup.Version(emulated.String())
}

// applySetup applies the setup of a starting process to its policy. It reports whether the process
// starts. Without --peer-ca-file a kube-apiserver has no proxy (CreateConfig in k8s.io/kubernetes,
// pkg/controlplane/apiserver). The reference refuses flags that cannot work (takesPart in
// proxy/apiserver/_server).
func (srv *server) applySetup() bool {
	setup := srv.setup
	if setup == nil {
		return true
	}
	half := setup.Advertise == scenario.AdvertiseIP || setup.Advertise == scenario.AdvertisePort
	if srv.reference() && (setup.PeerCA == scenario.TrustMissing || half) {
		return false
	}
	if setup.PeerCA == scenario.TrustMissing || setup.Flags == scenario.FlagsKubeadm && !srv.reference() {
		srv.on = false
	}
	return true
}

// refuse ends a process that refuses its setup. Then the setup blocks no link.
func (srv *server) refuse() {
	srv.refused = true
	srv.phase = down
	srv.gate.Close()
	srv.lifecycle(history.StateStopping, "it refuses its configuration: "+srv.setup.String())
	srv.lifecycle(history.StateStopped, "")
	srv.block(false)
	srv.s.driver.steps.Refused(srv.name)
	srv.s.driver.wake()
}

// reference reports whether the server's proxy is the reference; see [Setup].
func (srv *server) reference() bool { return srv.on && srv.s.setup.Reference && !srv.setup.IsPlain() }

// block sets the obstacles on the links from and to a server, which follow from its setup and those
// of the others. If on is false, it removes them.
func (srv *server) block(on bool) {
	s := srv.s
	for i, other := range s.servers {
		to, from := s.link(srv.index, i), s.link(i, srv.index)
		to.obstacle, from.obstacle = "", ""
		if on && other != srv {
			to.obstacle, from.obstacle = srv.obstacleTo(other), other.obstacleTo(srv)
		}
	}
	client := s.link(s.clientEnd(), srv.index)
	client.obstacle = ""
	if on {
		client.obstacle = srv.setup.FromClients()
	}
}

// obstacleTo returns the obstacle on the link to another server. The reference identifies a server
// that publishes no address.
func (srv *server) obstacleTo(other *server) scenario.Obstacle {
	obstacle := srv.setup.ObstacleTo(other.setup)
	if obstacle == scenario.Unadvertised && srv.s.setup.Reference && !srv.setup.IsPlain() {
		return scenario.NoObstacle
	}
	return obstacle
}

// obstructed ends a connection at the obstacle on its link, if there is one, and reports whether it
// did. If the front proxy's certificate is not allowed, the server accepts the connection and
// rejects the request; see [Simulator.unauthorized].
func (s *Simulator) obstructed(x *exchange) bool {
	l := x.link
	l.dialled++
	if f, ok := x.requester.(*fetch); ok && f.q.unroutable {
		s.dialNowhere(x)
		return true
	}
	switch l.obstacle {
	case scenario.NoObstacle, scenario.NotAllowed:
		return false
	case scenario.Distrusted:
		if l.from != s.clientEnd() && s.setup.believes() {
			return false
		}
		s.loop.After(s.latency(), nil, func() { x.broken(errDistrusted) })
	case scenario.Unroutable:
		s.dialNowhere(x)
	default:
		s.refuse(x)
	}
	return true
}

// dialNowhere makes an exchange dial an address to which no path leads, whatever the state of its
// target.
func (s *Simulator) dialNowhere(x *exchange) {
	x.link.inFlight = without(x.link.inFlight, x)
	s.giveUpAfter(x, dialTimeout, errDial)
}

// unauthorized answers 401 like a server that cannot authenticate the sender, and reports whether
// it did. Either the server does not trust the certificate of its peer, or the peer names no user.
func (s *Simulator) unauthorized(x *exchange) bool {
	trusted := x.link.obstacle != scenario.NotAllowed || s.setup.believes()
	if trusted && (x.parent == nil || x.request.Header.Get("X-Remote-User") != "") {
		return false
	}
	const body = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`
	if x.root < 0 {
		hop := x.newHop()
		hop.Status, hop.Unauthenticated = http.StatusUnauthorized, unauthenticated
		s.history.Hops = append(s.history.Hops, s.sharing.Hop(hop))
	}
	x.answerAtOnce(http.StatusUnauthorized, http.Header{}, body)
	return true
}
