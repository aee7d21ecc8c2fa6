package peers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// script drives a roster in virtual time. Its peer is "p". While listening, the key of "self" is
// renewed every five seconds.
type script struct {
	*Roster
	now      time.Time
	renewals int64
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
	return &script{Roster: NewRoster(config), now: epoch}
}

func (s *script) identity(holder string) {
	s.Identity(IdentityLease{ID: "p", Holder: holder, Renewed: s.now}, s.now)
}

// key renews the key of the peer.
func (s *script) key(address string) { s.keyOf("p", address) }

func (s *script) keyOf(id proxy.ServerID, address string) {
	s.renewals++
	s.Key(Key{ID: id, Address: address, Renewal: s.renewals}, s.now)
}

// listen lets time pass while only this server's own key is renewed.
func (s *script) listen(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(min(5*time.Second, end.Sub(s.now)))
		s.keyOf("self", "192.0.2.9:1")
	}
}

// renewing lets time pass while the peer renews its identity lease every five seconds.
func (s *script) renewing(d time.Duration, holder string) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.listen(min(5*time.Second, end.Sub(s.now)))
		s.identity(holder)
	}
}

// blind lets time pass while no lease changes.
func (s *script) blind(d time.Duration) { s.now = s.now.Add(d) }

// step is something that a script does, and what the roster then reports.
type step struct {
	name string
	do   func(*script)
	want []proxy.Event
}

func (s *script) play(t *testing.T, steps []step) {
	t.Helper()
	for _, step := range steps {
		step.do(s)
		if diff := cmp.Diff(step.want, s.Changes()); diff != "" {
			t.Fatalf("%s (want -, got +):\n%s", step.name, diff)
		}
	}
}

var (
	appeared  = func(incarnation string) proxy.Event { return proxy.PeerAppeared{ID: "p", Incarnation: incarnation} }
	addressed = func(address string) proxy.Event { return proxy.PeerAddress{ID: "p", Address: address} }
	gone      = proxy.Event(proxy.PeerGone{ID: "p"})
)

func TestRoster(t *testing.T) {
	const here, there = "192.0.2.1:6443", "192.0.2.2:6443"
	for _, tc := range []struct {
		name   string
		config RosterConfig
		steps  []step
	}{
		{name: "(a) a key that expires leaves its peer, without an address", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"not yet expired", func(s *script) { s.listen(14 * time.Second) }, nil},
			{"expired", func(s *script) { s.listen(time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed("")}},
			{"still there", func(s *script) { s.listen(50 * time.Minute) }, nil},
			{"written again", func(s *script) { s.key(here) }, []proxy.Event{addressed(here)}},
		}},
		{name: "(a) a renewed key says nothing new", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"renewed", func(s *script) { s.listen(10 * time.Second); s.key(here); s.listen(10 * time.Second) }, nil},
			{"restarted", func(s *script) { s.identity("h2") }, []proxy.Event{appeared("h2")}},
			{"it is the same again", func(s *script) { s.Key(Key{ID: "p", Address: here, Renewal: s.members["p"].key.renewal}, s.now) }, nil},
			{"so it expires", func(s *script) { s.listen(5 * time.Second) }, []proxy.Event{addressed("")}},
		}},
		{name: "(a) its identity lease may go first", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"identity", func(s *script) { s.IdentityGone("p", s.now) }, nil},
			{"it drains", func(s *script) { s.listen(5 * time.Second); s.key(here) }, nil},
			{"withdrawn", func(s *script) { s.KeyGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
		}},
		{name: "an identity lease alone is nothing", steps: []step{
			{"added", func(s *script) { s.identity("h1") }, nil},
			{"renewed", func(s *script) { s.renewing(time.Hour, "h1") }, nil},
			{"another holder", func(s *script) { s.identity("h2") }, nil},
			{"another's key is gone", func(s *script) { s.KeyGone("p", s.now) }, nil},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, nil},
		}},
		{name: "(c) the mark of a key that was never seen", steps: []step{
			{"alone", func(s *script) { s.Marked("p", true) }, nil},
			{"with an identity lease", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"not renewed", func(s *script) { s.listen(59 * time.Minute) }, nil},
			{"for an hour", func(s *script) { s.listen(time.Minute) }, []proxy.Event{gone}},
			{"restarted", func(s *script) { s.IdentityGone("p", s.now); s.identity("h2") }, []proxy.Event{appeared("h2")}},
			{"its key", func(s *script) { s.key(here); s.key(here) }, []proxy.Event{addressed(here)}},
			{"withdrawn", func(s *script) { s.KeyGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"and removed", func(s *script) { s.Marked("p", false); s.IdentityGone("p", s.now) }, nil},
		}},
		{name: "(c) a mark that is removed", steps: []step{
			{"both", func(s *script) { s.Marked("p", true); s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"removed", func(s *script) { s.Marked("p", false) }, []proxy.Event{gone}},
			{"the identity lease is still renewed", func(s *script) { s.renewing(time.Minute, "h1") }, nil},
		}},
		{name: "(b) a withdrawn key ends its peer at once, though its identity lease lingers", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"withdrawn", func(s *script) { s.KeyGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"lingers", func(s *script) { s.listen(2 * time.Minute) }, nil},
		}},
		{name: "(b) the identity lease is renewed after that: the server runs without its proxy", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"withdrawn", func(s *script) { s.KeyGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"the same again", func(s *script) { s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: epoch}, s.now) }, nil},
			{"renewed", func(s *script) { s.listen(5 * time.Second); s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"and not any more", func(s *script) { s.listen(time.Minute) }, []proxy.Event{gone}},
		}},
		{name: "(b) a key that was never seen to be renewed may have expired", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"gone", func(s *script) { s.listen(time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed("")}},
			{"still there", func(s *script) { s.listen(50 * time.Minute) }, nil},
		}},
		{name: "(b) a key that was renewed long ago has expired", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"paused meanwhile", func(s *script) { s.blind(20 * time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed("")}},
			{"still there", func(s *script) { s.listen(50 * time.Minute) }, nil},
		}},
		{name: "(c) an identity lease that was last renewed an hour ago no longer counts", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"expired", func(s *script) { s.listen(15 * time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed("")}},
			{"59 minutes", func(s *script) { s.listen(59 * time.Minute) }, nil},
			{"an hour", func(s *script) { s.listen(time.Minute) }, []proxy.Event{gone}},
			{"published again", func(s *script) { s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
		}},
		{name: "(c) the deletion of the identity lease ends it at once", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"expired", func(s *script) { s.listen(15 * time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed("")}},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, []proxy.Event{gone}},
			{"another process is nothing until it has a key", func(s *script) { s.identity("h2") }, nil},
			{"it has", func(s *script) { s.key(here) }, []proxy.Event{appeared("h2"), addressed(here)}},
		}},
		{name: "(c) a leftover lease is not a server", steps: []step{
			{"first sight", func(s *script) {
				s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: s.now.Add(-time.Hour)}, s.now)
				s.key(here)
			}, []proxy.Event{appeared("h1"), addressed(here)}},
			{"expired", func(s *script) { s.listen(15 * time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"it is renewed", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
		}},
		{name: "(d) an identified server counts while its lease is renewed", steps: []step{
			{"added", func(s *script) { s.identity("h1") }, nil},
			{"identified", func(s *script) { s.SetDirect(map[proxy.ServerID]string{"p": there}) }, []proxy.Event{appeared("h1"), directly(there)}},
			{"its address is unknown", func(s *script) { s.SetDirect(nil) }, []proxy.Event{addressed("")}},
			{"renewed", func(s *script) { s.renewing(time.Hour, "h1"); s.listen(50 * time.Second) }, nil},
			{"stale", func(s *script) { s.listen(10 * time.Second) }, []proxy.Event{gone}},
			{"renewed after all", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1")}},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, []proxy.Event{gone}},
			{"added again", func(s *script) { s.identity("h1") }, nil},
		}},
		{name: "without StaleAfter every lease is a live server, as upstream has it", config: RosterConfig{StaleAfter: forever}, steps: []step{
			{"old", func(s *script) {
				s.Identity(IdentityLease{ID: "p", Holder: "h1", Renewed: s.now.Add(-time.Hour)}, s.now)
			}, []proxy.Event{appeared("h1")}},
			{"older", func(s *script) { s.listen(2 * time.Hour) }, nil},
			{"published", func(s *script) { s.key(here) }, []proxy.Event{addressed(here)}},
			{"expired", func(s *script) { s.listen(2 * time.Hour) }, []proxy.Event{addressed("")}},
		}},
		{name: "(e) a roster that sees no change lets no key expire", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"hears nothing", func(s *script) { s.blind(3 * time.Hour) }, nil},
			{"hears itself", func(s *script) { s.listen(5 * time.Second) }, nil},
			{"hears the peer", func(s *script) { s.key(here) }, nil},
			{"listens, and the peer is silent", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
		}},
		{name: "(e) the same for identity leases", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"listens a while", func(s *script) { s.listen(55 * time.Minute) }, []proxy.Event{addressed("")}},
			{"hears nothing", func(s *script) { s.blind(3 * time.Hour); s.listen(5 * time.Second) }, nil},
			{"five seconds of silence counted, and then the rest", func(s *script) { s.listen(4*time.Minute + 55*time.Second) }, []proxy.Event{gone}},
		}},
		{name: "a clock that goes back makes nothing older", steps: []step{
			{"both", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"back", func(s *script) { s.now = s.now.Add(-time.Hour); s.listen(14 * time.Second) }, nil},
			{"renewed", func(s *script) { s.key(here) }, nil},
		}},
		{name: "an address that is none", steps: []step{
			{"published", func(s *script) { s.identity("h1"); s.key("") }, []proxy.Event{appeared("h1")}},
			{"corrected", func(s *script) { s.key(here) }, []proxy.Event{addressed(here)}},
			{"broken", func(s *script) { s.key("") }, []proxy.Event{addressed("")}},
		}},
		{name: "its own lease and key name no peer", steps: []step{
			{"own", func(s *script) {
				s.Identity(IdentityLease{ID: "self", Holder: "h1", Renewed: s.now}, s.now)
				s.listen(time.Minute)
				s.KeyGone("self", s.now)
				s.IdentityGone("self", s.now)
			}, nil},
		}},
		{name: "deletions of what was never seen", steps: []step{
			{"deleted", func(s *script) { s.KeyGone("p", s.now); s.IdentityGone("p", s.now) }, nil},
			{"added", func(s *script) { s.identity("h1"); s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			newScript(tc.config).play(t, tc.steps)
		})
	}
}

// Events are sorted by identity, and a server without leases is forgotten.
func TestRosterOrderAndMemory(t *testing.T) {
	r := NewRoster(RosterConfig{Self: "self"})
	for _, id := range []proxy.ServerID{"c", "a", "b"} {
		r.Identity(IdentityLease{ID: id, Holder: "h", Renewed: epoch}, epoch)
		r.Key(Key{ID: id, Renewal: 1}, epoch)
	}
	want := []proxy.Event{
		proxy.PeerAppeared{ID: "a", Incarnation: "h"}, proxy.PeerAppeared{ID: "b", Incarnation: "h"}, proxy.PeerAppeared{ID: "c", Incarnation: "h"},
	}
	if diff := cmp.Diff(want, r.Changes()); diff != "" {
		t.Fatal(diff)
	}
	for _, id := range []proxy.ServerID{"c", "a", "b", "never"} {
		r.IdentityGone(id, epoch)
		r.KeyGone(id, epoch)
	}
	r.Changes()
	if len(r.members) != 0 {
		t.Fatalf("members are still remembered: %v", r.members)
	}
}

// The first sight of an identity lease compares two clocks. If this server's clock is far ahead, a
// server without a key does not count until the next renewal.
func TestFirstSightOfALeaseByAnotherClock(t *testing.T) {
	there := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		ahead time.Duration // of this server's clock
		live  bool
	}{
		"the same":              {0, true},
		"ahead by five seconds": {5 * time.Second, true},
		"ahead by an hour":      {time.Hour, false},
		"behind by an hour":     {-time.Hour, true},
	} {
		r, here := NewRoster(RosterConfig{Self: "self", StaleAfter: time.Minute}), there.Add(c.ahead)
		r.SetDirect(map[proxy.ServerID]string{"a": "192.0.2.1:1"})
		r.Identity(IdentityLease{ID: "a", Holder: "1", Renewed: there}, here)
		if state := r.join("a", r.members["a"]); state.live != c.live {
			t.Errorf("%s: %+v; want live %t", name, state, c.live)
		}
		r.Identity(IdentityLease{ID: "a", Holder: "1", Renewed: there.Add(5 * time.Second)}, here.Add(5*time.Second))
		if state := r.join("a", r.members["a"]); !state.live || state.address == "" {
			t.Errorf("%s, after the next renewal: %+v", name, state)
		}
	}
}
