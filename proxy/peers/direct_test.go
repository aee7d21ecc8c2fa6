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

// Rule (g): a server that publishes no address is asked where it was identified, as long as it
// lives.
func TestServersWithoutAKeyAreAskedDirectly(t *testing.T) {
	const proxied, own = "192.0.2.1:6443", "192.0.2.1:8443"
	known := map[proxy.ServerID]string{"p": own, "self": "192.0.2.9:1"}
	publish := func(s *script) { s.identity("h1"); s.key(proxied); s.key(proxied) }
	published := []proxy.Event{appeared("h1"), addressed(proxied)}
	for _, tc := range []struct {
		name   string
		direct map[proxy.ServerID]string
		steps  []step
	}{
		{name: "an address alone is not a server", direct: known, steps: []step{
			{"nothing", func(s *script) { s.listen(time.Minute) }, nil},
		}},
		{name: "it begins to write a key", direct: known, steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"renewed", func(s *script) { s.listen(30 * time.Second); s.identity("h1") }, nil},
			{"restarted", func(s *script) { s.identity("h2") }, []proxy.Event{appeared("h2")}},
			{"published", func(s *script) { s.key(proxied) }, []proxy.Event{addressed(proxied)}},
		}},
		{name: "its key has the address where it was identified", direct: known, steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"published", func(s *script) { s.key(own) }, []proxy.Event{addressed(own)}},
		}},
		{name: "it stops to write a key", direct: known, steps: []step{
			{"published", publish, published},
			{"withdrawn: the server may have ended too", func(s *script) { s.KeyGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
			{"renewed", func(s *script) { s.listen(5 * time.Second); s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"and not any more", func(s *script) { s.listen(time.Minute) }, []proxy.Event{addressed(""), gone}},
		}},
		{name: "it has ended", direct: known, steps: []step{
			{"added", func(s *script) { s.identity("h1") }, []proxy.Event{appeared("h1"), directly(own)}},
			{"deleted", func(s *script) { s.IdentityGone("p", s.now) }, []proxy.Event{addressed(""), gone}},
		}},
		{name: "its key has expired, and its lease is not renewed: 503 as ever", direct: known, steps: []step{
			{"published", publish, published},
			{"expired", func(s *script) { s.listen(15 * time.Second); s.KeyGone("p", s.now) }, []proxy.Event{addressed("")}},
			{"still", func(s *script) { s.listen(time.Minute) }, nil},
		}},
		{name: "a renewal just before its key expired shows nothing", direct: known, steps: []step{
			{"published", publish, published},
			{"renewed", func(s *script) { s.listen(10 * time.Second); s.identity("h1") }, nil},
			{"expired", func(s *script) { s.listen(5 * time.Second) }, []proxy.Event{addressed("")}},
			{"and is gone", func(s *script) { s.KeyGone("p", s.now) }, nil},
		}},
		{name: "its key has expired, but its lease is renewed: what it served stays known", direct: known, steps: []step{
			{"published", publish, published},
			{"expired", func(s *script) { s.listen(15 * time.Second) }, []proxy.Event{addressed("")}},
			{"renewed", func(s *script) { s.identity("h1") }, []proxy.Event{directly(own)}},
			{"the key is gone", func(s *script) { s.KeyGone("p", s.now) }, nil},
			{"published again", func(s *script) { s.key(proxied) }, []proxy.Event{addressed(proxied)}},
		}},
		{name: "addresses are learnt and forgotten", steps: []step{
			{"added", func(s *script) { s.identity("h1") }, nil},
			{"learnt", func(s *script) { s.SetDirect(map[proxy.ServerID]string{"p": own}) }, []proxy.Event{appeared("h1"), directly(own)}},
			{"another", func(s *script) { s.SetDirect(map[proxy.ServerID]string{"p": proxied}) }, []proxy.Event{directly(proxied)}},
			{"forgotten", func(s *script) { s.SetDirect(nil) }, []proxy.Event{addressed("")}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript(RosterConfig{})
			s.SetDirect(tc.direct)
			s.play(t, tc.steps)
		})
	}
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

func TestWithoutKey(t *testing.T) {
	s := newScript(RosterConfig{})
	s.SetDirect(map[proxy.ServerID]string{"b": "192.0.2.2:1", "c": "192.0.2.3:1"})
	ids := []proxy.ServerID{"a", "b", "c", "d", "self"}
	for _, id := range ids {
		s.Identity(IdentityLease{ID: id, Holder: "h", Renewed: s.now}, s.now)
	}
	s.keyOf("c", "192.0.2.3:1")
	s.keyOf("d", "192.0.2.5:1")
	s.Changes()
	check := func(when string, wantDirect, wantUnknown []proxy.ServerID) {
		t.Helper()
		direct, unknown := s.WithoutKey()
		if diff := cmp.Diff([][]proxy.ServerID{wantDirect, wantUnknown}, [][]proxy.ServerID{direct, unknown}); diff != "" {
			t.Errorf("%s: direct and unknown (-want +got):\n%s", when, diff)
		}
	}
	check("at first", []proxy.ServerID{"b"}, []proxy.ServerID{"a"})
	s.listen(15 * time.Second)
	s.Changes()
	check("with keys that expired after the last renewal", []proxy.ServerID{"b"}, []proxy.ServerID{"a"})
	for _, id := range ids {
		s.Identity(IdentityLease{ID: id, Holder: "h", Renewed: s.now}, s.now)
	}
	s.Changes()
	check("with keys that expired before it", []proxy.ServerID{"b", "c"}, []proxy.ServerID{"a", "d"})
	s.listen(time.Minute)
	s.Changes()
	check("with leases that are not renewed", nil, nil)
}

// The log says once which servers have no key, and says when all have one. It says nothing while a
// server starts.
func TestLogOfServersWithoutAKey(t *testing.T) {
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
		{"for some seconds", func() { s.identity("h1"); s.pass(w, 9); s.key("192.0.2.1:1"); s.key("192.0.2.1:1"); s.pass(w, 10) }, ""},
		{"one nobody knows", func() { s.KeyGone("p", s.now); s.identity("h2"); s.pass(w, 11) }, "level=WARN"},
		{"still", func() { s.identity("h2"); s.pass(w, 30) }, ""},
		{"a server that is asked", func() {
			s.Identity(IdentityLease{ID: "q", Holder: "h", Renewed: s.now}, s.now)
			s.key("192.0.2.1:1")
			s.pass(w, 11)
		}, "level=INFO msg=\"servers publish no address for peers, and are asked directly\" servers=[q]"},
		{"none any more", func() { s.IdentityGone("q", s.now); s.pass(w, 11) }, "every server publishes its address for peers"},
	} {
		logged.Reset()
		tc.do()
		if got := logged.String(); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: logged %q, want %q", tc.name, got, tc.want)
		}
	}
}

// pass lets a number of seconds pass. In each second, the lease watch checks which servers have no
// key.
func (s *script) pass(w *leaseWatch, seconds int) {
	for range seconds {
		s.Changes()
		w.logWithoutKey(s.now)
		s.now = s.now.Add(time.Second)
	}
}
