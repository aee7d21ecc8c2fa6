package peers

import (
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

func TestDuplicateIdentities(t *testing.T) {
	const here, there, own = "192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.9:1"
	other := func(id string) proxy.ServerID { return proxy.DuplicateID(proxy.ServerID(id), there) }
	// both lets p and its duplicate renew their common key in turn, for a while.
	both := func(s *script, d time.Duration) {
		for end := s.now.Add(d); s.now.Before(end); {
			s.listen(time.Second)
			s.key(here)
			s.listen(time.Second)
			s.key(there)
		}
	}
	begin := []step{
		{"the one", func(s *script) { s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
		{"the other", func(s *script) { s.listen(time.Second); s.key(there) },
			[]proxy.Event{proxy.PeerAppeared{ID: other("p")}, proxy.PeerAddress{ID: other("p"), Address: there}}},
		{"both go on", func(s *script) { both(s, time.Minute) }, nil},
	}
	ends := []proxy.Event{proxy.PeerAddress{ID: other("p")}, proxy.PeerGone{ID: other("p")}}
	for name, steps := range map[string][]step{
		"the second gets a name of its own": append(slices.Clone(begin),
			step{"it is silent", func(s *script) {
				for range 4 {
					s.listen(5 * time.Second)
					s.key(here)
				}
			}, ends}),
		"the second stops in good order, having written last": append(slices.Clone(begin),
			step{"the key is removed", func(s *script) { s.KeyGone("p", s.now) }, ends},
			step{"and written again", func(s *script) { s.listen(time.Second); s.key(here) }, nil}),
		"the first stops in good order, having written last": append(slices.Clone(begin),
			step{"the key is removed", func(s *script) { s.key(here); s.KeyGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			step{"and written by the second", func(s *script) { s.listen(time.Second); s.key(there) }, nil}),
		"a server that was killed comes back at another address": {
			{"before", func(s *script) { s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"after", func(s *script) { s.listen(5 * time.Second); s.key(there) },
				[]proxy.Event{proxy.PeerAppeared{ID: other("p")}, proxy.PeerAddress{ID: other("p"), Address: there}}},
			{"the old key has expired", func(s *script) { s.listen(5 * time.Second); s.key(there); s.listen(5 * time.Second) },
				append([]proxy.Event{addressed(there)}, ends...)},
			{"it goes on", func(s *script) { s.key(there) }, nil},
		},
		"a server that was killed long ago comes back at another address": {
			{"before", func(s *script) { s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"silent", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
			{"after", func(s *script) { s.key(there) }, []proxy.Event{addressed(there)}},
		},
		"a server that was killed comes back where it was": {
			{"before", func(s *script) { s.key(here) }, []proxy.Event{appeared("h1"), addressed(here)}},
			{"after", func(s *script) { s.listen(time.Second); s.key(here) }, nil},
		},
		"another server has this server's own name": {
			{"its own key", func(s *script) { s.listen(5 * time.Second) }, nil},
			{"the other's", func(s *script) {
				s.keyOf("self", there)
			}, []proxy.Event{proxy.PeerAppeared{ID: other("self")}, proxy.PeerAddress{ID: other("self"), Address: there}}},
			{"silent", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{proxy.PeerAddress{ID: other("self")}, proxy.PeerGone{ID: other("self")}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(RosterConfig{Address: own})
			s.identity("h1")
			s.play(t, steps)
			if names := s.Duplicates(); len(names) > 0 {
				s.listen(15 * time.Second)
				s.Changes()
			}
			if left := s.Duplicates(); len(left) > 0 {
				t.Errorf("still duplicates when no key is renewed: %v", left)
			}
		})
	}
}

// A server that does not know its own address takes every key with its name for its own.
func TestOwnKeyWithoutAnAddress(t *testing.T) {
	s := newScript(RosterConfig{})
	s.keyOf("self", "192.0.2.2:6443")
	if got := s.Changes(); len(got) != 0 {
		t.Errorf("it got %v", got)
	}
}
