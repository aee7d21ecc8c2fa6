package peers

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy"
)

func TestDuplicateIdentities(t *testing.T) {
	const here, there, own = "192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.9:1"
	other := func(id string) proxy.ServerID { return proxy.DuplicateID(proxy.ServerID(id), there) }
	type step struct {
		name string
		do   func(*script)
		want []proxy.Event
	}
	// both lets p and its duplicate renew their common lease in turn, for a while.
	both := func(s *script, d time.Duration) {
		for end := s.now.Add(d); s.now.Before(end); {
			s.listen(time.Second)
			s.endpoint("i1", here)
			s.listen(time.Second)
			s.endpoint("i2", there)
		}
	}
	begin := []step{
		{"the one", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
		{"the other", func(s *script) { s.listen(time.Second); s.endpoint("i2", there) },
			[]proxy.Event{proxy.PeerAppeared{ID: other("p"), Incarnation: "i2"}, proxy.PeerAddress{ID: other("p"), Address: there}}},
		{"both go on", func(s *script) { both(s, time.Minute) }, nil},
	}
	ends := []proxy.Event{proxy.PeerAddress{ID: other("p")}, proxy.PeerGone{ID: other("p")}}
	for name, steps := range map[string][]step{
		"the second gets a name of its own": append(slices.Clone(begin),
			step{"it is silent", func(s *script) {
				for range 4 {
					s.listen(5 * time.Second)
					s.endpoint("i1", here)
				}
			}, ends}),
		"the second stops in good order, having written last": append(slices.Clone(begin),
			step{"the lease is deleted", func(s *script) { s.EndpointGone("p", s.now) }, ends},
			step{"and written again", func(s *script) { s.listen(time.Second); s.endpoint("i1", here) }, nil}),
		"the first stops in good order, having written last": append(slices.Clone(begin),
			step{"the lease is deleted", func(s *script) { s.endpoint("i1", here); s.EndpointGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			step{"and written by the second", func(s *script) { s.listen(time.Second); s.endpoint("i2", there) }, nil}),
		"the second is started again": append(slices.Clone(begin),
			step{"another process", func(s *script) { s.listen(time.Second); s.endpoint("i3", there) }, []proxy.Event{proxy.PeerAppeared{ID: other("p"), Incarnation: "i3"}}}),
		"a server that was killed comes back at another address": {
			{"before", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"after", func(s *script) { s.listen(5 * time.Second); s.endpoint("i2", there) },
				[]proxy.Event{proxy.PeerAppeared{ID: other("p"), Incarnation: "i2"}, proxy.PeerAddress{ID: other("p"), Address: there}}},
			{"the old lease has expired", func(s *script) { s.listen(5 * time.Second); s.endpoint("i2", there); s.listen(5 * time.Second) },
				append([]proxy.Event{appeared("i2"), addressed(there)}, ends...)},
			{"it goes on", func(s *script) { s.endpoint("i2", there) }, nil},
		},
		"a server that was killed long ago comes back at another address": {
			{"before", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"silent", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
			{"after", func(s *script) { s.endpoint("i2", there) }, []proxy.Event{appeared("i2"), addressed(there)}},
		},
		"a server that was killed comes back where it was": {
			{"before", func(s *script) { s.endpoint("i1", here) }, []proxy.Event{appeared("i1"), addressed(here)}},
			{"after", func(s *script) { s.listen(time.Second); s.endpoint("i2", here) }, []proxy.Event{appeared("i2")}},
		},
		"another server has this server's own name": {
			{"its own lease", func(s *script) { s.listen(5 * time.Second) }, nil},
			{"the other's", func(s *script) {
				s.Endpoint(EndpointLease{ID: "self", Holder: "i2", Renewed: s.now, Duration: leaseDuration, Address: there}, s.now)
			}, []proxy.Event{proxy.PeerAppeared{ID: other("self"), Incarnation: "i2"}, proxy.PeerAddress{ID: other("self"), Address: there}}},
			{"silent", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{proxy.PeerAddress{ID: other("self")}, proxy.PeerGone{ID: other("self")}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(RosterConfig{Address: own})
			for _, step := range steps {
				step.do(s)
				if diff := cmp.Diff(step.want, s.Changes()); diff != "" {
					t.Fatalf("%s (want -, got +):\n%s", step.name, diff)
				}
			}
			if names := s.Duplicates(); len(names) > 0 {
				s.listen(15 * time.Second)
				s.Changes()
			}
			if left := s.Duplicates(); len(left) > 0 {
				t.Errorf("still duplicates when no lease is renewed: %v", left)
			}
		})
	}
}

// A server that does not know its own address takes every lease with its name for its own lease.
func TestOwnLeaseWithoutAnAddress(t *testing.T) {
	s := newScript(RosterConfig{})
	s.Endpoint(EndpointLease{ID: "self", Holder: "i2", Renewed: s.now, Duration: leaseDuration, Address: "192.0.2.2:6443"}, s.now)
	if got := s.Changes(); len(got) != 0 {
		t.Errorf("it got %v", got)
	}
}
