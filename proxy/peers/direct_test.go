package peers

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy"
)

// directly is the event that says that a server without a proxy is at an address.
func directly(address string) proxy.Event {
	return proxy.PeerAddress{ID: "p", Address: address, Direct: true}
}

// Rule (g): a server that publishes no address is asked at an address from elsewhere, as long as
// the server is live.
func TestServersWithoutProxyAreAskedDirectly(t *testing.T) {
	const proxied, own = "192.0.2.1:6443", "192.0.2.1:8443"
	known := map[proxy.ServerID]string{"p": own, "self": "192.0.2.9:1"}
	published := func(s *script) { s.identity("h1"); s.endpoint("i1", proxied) }
	publishedEvents := []proxy.Event{appeared("i1"), addressed(proxied)}
	type step struct {
		name string
		do   func(*script)
		want []proxy.Event
	}
	for _, tc := range []struct {
		name   string
		config RosterConfig
		direct map[proxy.ServerID]string
		steps  []step
	}{
		{name: "an address alone is not a server", direct: known, steps: []step{
			{"nothing", func(s *script) { s.listen(time.Minute) }, nil},
		}},
		{name: "it gets a proxy", direct: known, steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"renewed", func(s *script) { s.listen(30 * time.Second); s.identity("h1") }, nil},
			{"restarted", func(s *script) { s.identity("h2") }, []proxy.Event{appeared("h2")}},
			{"published", func(s *script) { s.endpoint("i1", proxied) }, []proxy.Event{appeared("i1"), addressed(proxied)}},
		}},
		{name: "its proxy is at the address that the kube-apiserver had", direct: known, steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"published", func(s *script) { s.endpoint("i1", own) }, []proxy.Event{appeared("i1"), addressed(own)}},
		}},
		{name: "its proxy is removed", direct: known, steps: []step{
			{"published", published, publishedEvents},
			{"deleted: the server may have ended too", func(s *script) { s.EndpointGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"renewed", func(s *script) { s.listen(5 * time.Second); s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"and not any more", func(s *script) { s.listen(time.Minute) }, []proxy.Event{addressed(""), gone}},
		}},
		{name: "it has ended", direct: known, steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
		}},
		{name: "its proxy is silent, and it is too: 503 as ever", direct: known, steps: []step{
			{"published", published, publishedEvents},
			{"expired", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
			{"still", func(s *script) { s.listen(time.Minute) }, nil},
		}},
		{name: "a renewal just before its proxy fell silent shows nothing", direct: known, steps: []step{
			{"published", published, publishedEvents},
			{"renewed", func(s *script) { s.listen(10 * time.Second); s.identity("h1") }, nil},
			{"expired", func(s *script) { s.listen(5 * time.Second) }, []proxy.Event{addressed("")}},
		}},
		{name: "its proxy is silent, but the server is not: what it served stays known", direct: known, steps: []step{
			{"published", published, publishedEvents},
			{"expired", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
			{"renewed", func(s *script) { s.identity("h1") }, []proxy.Event{directly(own)}},
			{"published again", func(s *script) { s.endpoint("i1", proxied) }, []proxy.Event{addressed(proxied)}},
		}},
		{name: "the same for a server without a known address", steps: []step{
			{"published", published, publishedEvents},
			{"expired", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
			{"renewed", func(s *script) { s.identity("h1") }, nil},
		}},
		{name: "addresses are learnt and forgotten", steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"learnt", func(s *script) { s.SetDirect(map[proxy.ServerID]string{"p": own}) }, []proxy.Event{directly(own)}},
			{"another", func(s *script) { s.SetDirect(map[proxy.ServerID]string{"p": proxied}) }, []proxy.Event{directly(proxied)}},
			{"forgotten", func(s *script) { s.SetDirect(nil) }, []proxy.Event{addressed("")}},
		}},
		{name: "its identity lease says where it is", config: RosterConfig{Advertised: true}, steps: []step{
			{"added", func(s *script) { s.advertise("h1", own) }, []proxy.Event{appeared("h1"), directly(own)}},
			{"moved", func(s *script) { s.listen(5 * time.Second); s.advertise("h1", proxied) }, []proxy.Event{directly(proxied)}},
			{"and no longer", func(s *script) { s.listen(5 * time.Second); s.identity("h1") }, []proxy.Event{addressed("")}},
		}},
		{name: "its identity lease says so, but the policy does not use it", steps: []step{
			{"added", func(s *script) { s.advertise("h1", own) }, []proxy.Event{appeared("h1")}},
		}},
		{name: "what was found counts more", config: RosterConfig{Advertised: true}, direct: known, steps: []step{
			{"added", func(s *script) { s.advertise("h1", proxied) }, []proxy.Event{appeared("h1"), directly(own)}},
		}},
		{name: "its proxy says where it is", config: RosterConfig{Advertised: true}, steps: []step{
			{"both", func(s *script) { s.advertise("h1", own); s.endpoint("i1", proxied) }, publishedEvents},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript(tc.config)
			s.SetDirect(tc.direct)
			for _, step := range tc.steps {
				step.do(s)
				if diff := cmp.Diff(step.want, s.Changes()); diff != "" {
					t.Fatalf("%s (want -, got +):\n%s", step.name, diff)
				}
			}
		})
	}
}

// advertise observes an identity lease with an address.
func (s *script) advertise(holder, address string) {
	s.Identity(IdentityLease{ID: "p", Holder: holder, Renewed: s.now, Address: address}, s.now)
}

// A change of the addresses of one roster does not change its clones.
func TestClonesKeepDirectAddresses(t *testing.T) {
	s := newScript(RosterConfig{})
	s.SetDirect(map[proxy.ServerID]string{"p": "192.0.2.1:1"})
	s.identity("h1")
	clone := s.Clone()
	s.SetDirect(nil)
	if diff := cmp.Diff([]proxy.Event{appeared("h1"), directly("192.0.2.1:1")}, clone.Changes()); diff != "" {
		t.Errorf("the clone (-want +got):\n%s", diff)
	}
}

func TestWithoutProxy(t *testing.T) {
	s := newScript(RosterConfig{})
	s.SetDirect(map[proxy.ServerID]string{"b": "192.0.2.2:1", "c": "192.0.2.3:1"})
	for _, id := range []proxy.ServerID{"a", "b", "c", "d", "self"} {
		s.Identity(IdentityLease{ID: id, Holder: "h", Renewed: s.now}, s.now)
	}
	s.Endpoint(EndpointLease{ID: "c", Holder: "i", Renewed: s.now, Duration: leaseDuration, Address: "192.0.2.3:1"}, s.now)
	s.Endpoint(EndpointLease{ID: "d", Holder: "i", Renewed: s.now, Duration: leaseDuration, Address: "192.0.2.5:1"}, s.now)
	s.Changes()
	check := func(when string, wantDirect, wantUnknown []proxy.ServerID) {
		t.Helper()
		direct, unknown := s.WithoutProxy()
		if diff := cmp.Diff([][]proxy.ServerID{wantDirect, wantUnknown}, [][]proxy.ServerID{direct, unknown}); diff != "" {
			t.Errorf("%s: direct and unknown (-want +got):\n%s", when, diff)
		}
	}
	check("at first", []proxy.ServerID{"b"}, []proxy.ServerID{"a"})
	s.listen(15 * time.Second)
	for _, id := range []proxy.ServerID{"a", "b", "c", "d"} {
		s.Identity(IdentityLease{ID: id, Holder: "h", Renewed: s.now}, s.now)
	}
	s.Changes()
	// The proxy of d may be cut off, because its lease exists.
	check("with expired leases", []proxy.ServerID{"b", "c"}, []proxy.ServerID{"a"})
}

// The log says once which servers have no proxy, and says when all have one. It says nothing while
// a server starts.
func TestLogOfServersWithoutProxy(t *testing.T) {
	var logged bytes.Buffer
	s := newScript(RosterConfig{})
	s.SetDirect(map[proxy.ServerID]string{"q": "192.0.2.2:1"})
	w := &leaseWatch{log: slog.New(slog.NewTextHandler(&logged, nil)), roster: s.Roster}
	for _, tc := range []struct {
		name string
		do   func()
		want string // "" for nothing
	}{
		{"nobody", func() {}, ""},
		{"for some seconds", func() { s.identity("h1"); s.pass(w, 9); s.endpoint("i1", "192.0.2.1:1"); s.pass(w, 30) }, ""},
		{"one nobody knows", func() { s.EndpointGone("p", s.now); s.identity("h2"); s.pass(w, 11) }, "level=WARN"},
		{"still", func() { s.identity("h2"); s.pass(w, 30) }, ""},
		{"a server that is asked", func() {
			s.Identity(IdentityLease{ID: "q", Holder: "h", Renewed: s.now}, s.now)
			s.endpoint("i2", "192.0.2.1:1")
			s.pass(w, 11)
		}, "level=INFO msg=\"live servers have no proxy, and are asked directly\" servers=[q]"},
		{"none any more", func() { s.IdentityGone("q", s.now); s.pass(w, 11) }, "every live server has a proxy"},
	} {
		logged.Reset()
		tc.do()
		if got := logged.String(); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: logged %q, want %q", tc.name, got, tc.want)
		}
	}
}

// pass lets a number of seconds pass. In each second, the lease watch checks which servers have no
// proxy.
func (s *script) pass(w *leaseWatch, seconds int) {
	for range seconds {
		s.Changes()
		w.logWithoutProxy(s.now)
		s.now = s.now.Add(time.Second)
	}
}
