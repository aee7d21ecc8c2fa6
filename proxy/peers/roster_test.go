package peers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// script drives a roster in virtual time. Its peer is "p". While listening, the lease of "self" is
// renewed every five seconds.
type script struct {
	*Roster
	now time.Time
}

// forever means a StaleAfter of zero in these tests, because a zero in a test means a minute.
const forever = time.Duration(-1)

func newScript(config RosterConfig) *script {
	config.Self = "self"
	switch config.StaleAfter {
	case 0:
		config.StaleAfter = time.Minute
	case forever:
		config.StaleAfter = 0
	}
	return &script{NewRoster(config), epoch}
}

func (s *script) identity(holder string) {
	s.Identity(IdentityLease{ID: "p", Holder: holder, Renewed: s.now}, s.now)
}

func (s *script) endpoint(holder, address string) {
	s.Endpoint(EndpointLease{ID: "p", Holder: holder, Renewed: s.now, Duration: leaseDuration, Address: address}, s.now)
}

// listen lets time pass while only this server's own lease is renewed.
func (s *script) listen(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(min(5*time.Second, end.Sub(s.now)))
		s.Endpoint(EndpointLease{ID: "self", Holder: "me", Renewed: s.now, Duration: leaseDuration, Address: "192.0.2.9:1"}, s.now)
	}
}

// blind lets time pass while no lease changes.
func (s *script) blind(d time.Duration) { s.now = s.now.Add(d) }

var (
	appeared  = func(incarnation string) proxy.Event { return proxy.PeerAppeared{ID: "p", Incarnation: incarnation} }
	addressed = func(address string) proxy.Event { return proxy.PeerAddress{ID: "p", Address: address} }
	gone      = proxy.Event(proxy.PeerGone{ID: "p"})
)

func TestRoster(t *testing.T) {
	const here, there = "192.0.2.1:6443", "192.0.2.2:6443"
	type step struct {
		name string
		do   func(*script)
		want []proxy.Event
	}
	for _, tc := range []struct {
		name   string
		config RosterConfig
		steps  []step
	}{
		{name: "(a) an expired endpoint lease loses its address, and keeps its peer", steps: []step{
			{"published", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"not yet expired", func(s *script) { s.listen(14 * time.Second) }, nil},
			{"expired", func(s *script) { s.listen(5 * time.Second) }, []proxy.Event{addressed("")}},
			{"still there", func(s *script) { s.listen(50 * time.Minute) }, nil},
			{"renewed", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{addressed(here)}},
		}},
		{name: "(a) a renewed endpoint lease says nothing new", steps: []step{
			{"published", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"renewed", func(s *script) { s.listen(10 * time.Second); s.endpoint("i1", here); s.listen(10 * time.Second) }, nil},
			{"moved", func(s *script) { s.endpoint("i1", there) }, []proxy.Event{addressed(there)}},
			{"restarted", func(s *script) { s.endpoint("i2", there) }, []proxy.Event{appeared("i2")}},
		}},
		{name: "(b) a deleted endpoint lease ends its peer at once, though its identity lease lingers", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"deleted", func(s *script) { s.EndpointGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"lingers", func(s *script) { s.listen(2 * time.Minute) }, nil},
		}},
		{name: "(b) the identity lease is renewed after that: the server runs without its proxy", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"deleted", func(s *script) { s.EndpointGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"the same again", func(s *script) { s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: epoch}, s.now) }, nil},
			{"renewed", func(s *script) { s.listen(5 * time.Second); s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"and not any more", func(s *script) { s.listen(time.Minute) }, []proxy.Event{gone}},
		}},
		{name: "(b) both leases are deleted", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"identity", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"endpoint", func(s *script) { s.EndpointGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"started again", func(s *script) { s.identity("h2") }, []proxy.Event{appeared("h2")}},
		}},
		{name: "(c) an endpoint lease that expired an hour ago no longer counts", steps: []step{
			{"published", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"expired", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
			{"59 minutes", func(s *script) { s.listen(59 * time.Minute) }, nil},
			{"an hour", func(s *script) { s.listen(time.Minute) }, []proxy.Event{gone}},
			{"published again", func(s *script) { s.endpoint("i2", here) }, []proxy.Event{appeared("i2"), addressed(here)}},
		}},
		{name: "(c) GoneAfter, and a renewed identity lease takes over", config: RosterConfig{GoneAfter: 10 * time.Second}, steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"expired", func(s *script) { s.listen(20 * time.Second); s.identity("h1") }, []proxy.Event{addressed("")}},
			{"no longer counts", func(s *script) { s.listen(5 * time.Second) }, []proxy.Event{appeared("h1")}},
		}},
		{name: "(d) identity lease alone", steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"renewed", func(s *script) { s.listen(50 * time.Second); s.identity("h1"); s.listen(50 * time.Second) }, nil},
			{"stale", func(s *script) { s.listen(10 * time.Second) }, []proxy.Event{gone}},
			{"renewed after all", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"restarted", func(s *script) { s.identity("h2") }, []proxy.Event{appeared("h2")}},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, []proxy.Event{gone}},
		}},
		{name: "(d) a leftover lease is not a server", steps: []step{
			{"first sight", func(s *script) {
				s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: s.now.Add(-time.Minute)}, s.now)
			}, nil},
			{"it is renewed: only its holder's clock was slow", func(s *script) {
				s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: s.now.Add(-50 * time.Second)}, s.now)
			}, []proxy.Event{appeared("h1")}},
		}},
		{name: "(d) a lease without a time, and one from the future", steps: []step{
			{"without", func(s *script) { s.Identity(IdentityLease{ID: "p", Holder: "h1"}, s.now) }, nil},
			{"long after", func(s *script) { s.listen(3 * time.Hour) }, nil},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"future", func(s *script) {
				s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: s.now.Add(time.Hour)}, s.now)
			}, []proxy.Event{appeared("h1")}},
			{"stale all the same", func(s *script) { s.listen(time.Minute) }, []proxy.Event{gone}},
		}},
		{name: "an endpoint lease without a time gives no address, and an old one keeps no server alive", steps: []step{
			{"without", func(s *script) {
				s.Endpoint(EndpointLease{ID: "p", Holder: "i1", Duration: leaseDuration, Address: here}, s.now)
			}, nil},
			{"renewed", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
		}},
		{name: "without StaleAfter every lease is a live server, as upstream has it", config: RosterConfig{StaleAfter: forever}, steps: []step{
			{"old", func(s *script) {
				s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: s.now.Add(-time.Hour)}, s.now)
			}, []proxy.Event{appeared("h1")}},
			{"older", func(s *script) { s.listen(2 * time.Hour) }, nil},
		}},
		{name: "(e) a roster that sees no change lets no server expire", steps: []step{
			{"both kinds", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"hears nothing", func(s *script) { s.blind(3 * time.Hour) }, nil},
			{"hears itself", func(s *script) { s.listen(5 * time.Second) }, nil},
			{"hears the peer", func(s *script) { s.endpoint("i1", here) }, nil},
			{"listens, and the peer is silent", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
		}},
		{name: "(e) the same for identity leases", steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"listens a while", func(s *script) { s.listen(45 * time.Second) }, nil},
			{"hears nothing", func(s *script) { s.blind(3 * time.Hour); s.listen(5 * time.Second) }, nil},
			{"five seconds of silence counted, and five more", func(s *script) { s.listen(10 * time.Second) }, []proxy.Event{gone}},
		}},
		{name: "a clock that goes back makes nothing older", steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"back", func(s *script) { s.now = s.now.Add(-time.Hour); s.listen(50 * time.Second) }, nil},
			{"renewed", func(s *script) { s.identity("h1") }, nil},
		}},
		{name: "an address that is none", steps: []step{
			{"published", func(s *script) { s.endpoint("i1", "") }, []proxy.Event{appeared("i1")}},
			{"corrected", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{addressed(here)}},
			{"broken", func(s *script) { s.endpoint("i1", "") }, []proxy.Event{addressed("")}},
		}},
		{name: "its own leases name no peer", steps: []step{
			{"own", func(s *script) {
				s.Identity(IdentityLease{ID: "self", Holder: "h1", Renewed: s.now}, s.now)
				s.listen(time.Minute)
				s.EndpointGone("self", s.now)
				s.IdentityGone("self", s.now)
			}, nil},
		}},
		{name: "deletions of leases that were never seen", steps: []step{
			{"deleted", func(s *script) { s.EndpointGone("p", s.now); s.IdentityGone("p", s.now) }, nil},
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript(tc.config)
			for _, step := range tc.steps {
				step.do(s)
				if diff := cmp.Diff(step.want, s.Changes()); diff != "" {
					t.Fatalf("%s (want -, got +):\n%s", step.name, diff)
				}
			}
		})
	}
}

// Events are sorted by identity, and a server without leases is forgotten.
func TestRosterOrderAndMemory(t *testing.T) {
	r := NewRoster(RosterConfig{Self: "self"})
	for _, id := range []proxy.ServerID{"c", "a", "b"} {
		r.Identity(IdentityLease{ID: id, Holder: "h", Renewed: epoch}, epoch)
	}
	want := []proxy.Event{
		proxy.PeerAppeared{ID: "a", Incarnation: "h"}, proxy.PeerAppeared{ID: "b", Incarnation: "h"}, proxy.PeerAppeared{ID: "c", Incarnation: "h"},
	}
	if diff := cmp.Diff(want, r.Changes()); diff != "" {
		t.Fatal(diff)
	}
	for _, id := range []proxy.ServerID{"c", "a", "b", "never"} {
		r.IdentityGone(id, epoch)
	}
	r.Changes()
	if len(r.members) != 0 {
		t.Fatalf("members are still remembered: %v", r.members)
	}
}
