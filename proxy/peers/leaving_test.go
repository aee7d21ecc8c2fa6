package peers

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

// Rule (b): from v1.35, an identity lease that still exists shows that only the proxy has stopped.
// The knowledge of the server then stays, and requests for its resources are answered with 503.
func TestOnlyTheProxyLeaves(t *testing.T) {
	const here, own = "192.0.2.1:6443", "192.0.2.1:8443"
	of := func(version string) step {
		return step{"both", func(s *script) {
			s.identity("h1")
			s.key(here)
			s.key(here)
			s.Changes()
			s.Fetched("p", version, false, s.now)
		}, nil}
	}
	deleted := func(s *script) { s.KeyGone("p", s.now) }
	refused := func(s *script) { s.now = s.now.Add(stillCounts); s.Fetched("p", "", true, s.now) }
	for _, tc := range []struct {
		name   string
		config RosterConfig
		direct map[proxy.ServerID]string
		steps  []step
	}{
		{name: "the proxy comes back", steps: []step{
			of("v1.35.0"),
			{"deleted", deleted, []proxy.Event{addressed("")}},
			{"renewed", func(s *script) { s.listen(10 * time.Second); s.identity("h1") }, nil},
			{"published again", func(s *script) { s.key(here) }, []proxy.Event{addressed(here)}},
		}},
		{name: "the server stops too", steps: []step{
			of("v1.37.1"),
			{"deleted", deleted, []proxy.Event{addressed("")}},
			{"identity", func(s *script) { s.IdentityGone("p", s.now) }, []proxy.Event{gone}},
		}},
		{name: "the server has stopped before", steps: []step{
			of("v1.37.1"),
			{"identity", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"deleted", deleted, []proxy.Event{addressed(""), gone}},
		}},
		{name: "the server restarts without the proxy", direct: map[proxy.ServerID]string{"p": own}, steps: []step{
			of("v1.36.3"),
			{"deleted", deleted, []proxy.Event{directly(own)}},
			{"another process", func(s *script) { s.listen(5 * time.Second); s.identity("h2") }, []proxy.Event{appeared("h2")}},
		}},
		{name: "the server is killed after its proxy stopped", steps: []step{
			of("v1.36.3"),
			{"deleted", deleted, []proxy.Event{addressed("")}},
			{"silent", func(s *script) { s.listen(time.Minute) }, []proxy.Event{gone}},
			{"it comes back", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"and stays the same", func(s *script) { s.listen(5 * time.Second); s.identity("h1") }, nil},
		}},
		{name: "an earlier version leaves its identity lease behind", steps: []step{
			of("v1.34.9"),
			{"deleted", deleted, []proxy.Event{addressed(""), gone}},
		}},
		{name: "nor is it known of a version that is not out", steps: []step{
			of("v1.35.0-rc.1"),
			{"deleted", deleted, []proxy.Event{addressed(""), gone}},
		}},
		{name: "nor of a peer that was never asked", steps: []step{
			of(""),
			{"deleted", deleted, []proxy.Event{addressed(""), gone}},
		}},
		{name: "a failed fetch says nothing of the version", steps: []step{
			of("v1.36.3"),
			{"failed", func(s *script) { s.Fetched("p", "", false, s.now) }, nil},
			{"deleted", deleted, []proxy.Event{addressed("")}},
		}},
		{name: "rule (h): it serves on", config: RosterConfig{Leaving: time.Minute}, steps: []step{
			of("v1.34.9"),
			{"deleted", deleted, []proxy.Event{directly(here)}},
			{"asked", func(s *script) { s.Fetched("p", "v1.34.9", false, s.now) }, nil},
			{"refused at once, so its address may be wrong", func(s *script) { s.Fetched("p", "", true, s.now) }, nil},
			{"refused", refused, []proxy.Event{addressed(""), gone}},
			{"and again", refused, nil},
		}},
		{name: "rule (h): the identity goes first", config: RosterConfig{Leaving: time.Minute}, steps: []step{
			of("v1.37.1"),
			{"identity", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"deleted", deleted, []proxy.Event{directly(here)}},
			{"for long", func(s *script) { s.listen(time.Minute) }, []proxy.Event{addressed(""), gone}},
		}},
		{name: "rule (h): it restarts", config: RosterConfig{Leaving: time.Minute}, steps: []step{
			of("v1.37.1"),
			{"deleted", deleted, []proxy.Event{directly(here)}},
			{"identity", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"another process, which is not ready yet", func(s *script) { s.identity("h2") }, []proxy.Event{addressed(""), gone}},
			{"published", func(s *script) { s.key(here); s.key(here) }, []proxy.Event{appeared("h2"), addressed(here)}},
			{"identity again", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"deleted again", deleted, []proxy.Event{directly(here)}},
		}},
		{name: "rule (h): its address is not known any more", config: RosterConfig{Leaving: time.Minute}, steps: []step{
			of("v1.37.1"),
			{"expired", func(s *script) { s.listen(15 * time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed("")}},
			{"identity", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"it may still serve", func(s *script) { s.listen(time.Second) }, nil},
			{"it does not any more", func(s *script) { s.listen(time.Second) }, []proxy.Event{gone}},
		}},
		{name: "rule (h): a server without a proxy", config: RosterConfig{Leaving: time.Minute}, direct: map[proxy.ServerID]string{"p": own}, steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"refused", refused, []proxy.Event{addressed(""), gone}},
			{"added again", func(s *script) { s.identity("h2") }, []proxy.Event{appeared("h2"), directly(own)}},
			{"and deleted", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"for long", func(s *script) { s.listen(time.Minute) }, []proxy.Event{addressed(""), gone}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript(tc.config)
			s.SetDirect(tc.direct)
			s.play(t, tc.steps)
		})
	}
}
