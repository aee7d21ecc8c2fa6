package sidecar

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forwarding has the names of a server that also trusts headers which many proxies set.
var forwarding = &identityNames{
	user: []string{"X-Forwarded-User", "X-Remote-User"}, uid: []string{"X-Remote-Uid"},
	group: []string{"X-Forwarded-Groups", "X-Remote-Group"}, extra: []string{"X-Forwarded-Extra-", "X-Remote-Extra-"},
}

// asRoot are headers that make a client root at such a server, in several spellings.
var asRoot = []string{
	"X-Forwarded-User", "root", "x-forwarded-user", "root", "X_Forwarded_User", "root", "X-Forwarded-Groups", "system:masters",
	"x_forwarded-GROUPS", "system:masters", "X-Forwarded-Extra-Scopes", "all",
}

func TestRefusesToStartIfTheServerReadsOtherHeaders(t *testing.T) {
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere)
	a.headers = forwarding
	o := w.options("a", a)
	o.Peers = []string{"apiserver-nobody=127.0.0.1:1"}
	o.Listener, o.AdminListener = listen(t), listen(t)
	err := Run(t.Context(), o)
	if err == nil {
		t.Fatal("it ran and stopped without an error")
	}
	for _, name := range []string{
		`"X-Forwarded-User"`, `"X-Forwarded-Groups"`, `"X-Forwarded-Extra-"`, "--requestheader-username-headers", "ConfigMap kube-system/" + authenticationConfig,
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

// The names are published after the sidecar has started, and change while it runs.
func TestPublishedHeadersAreRemoved(t *testing.T) {
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere)
	a.unpublished = true
	o := w.options("a", a)
	o.Peers = []string{"apiserver-nobody=127.0.0.1:1"}
	r := w.run(o)
	nobody := r.client(nil, true)
	got := r.get(nobody, common, asRoot...)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || len(a.identities(common)) != 0 {
		t.Errorf("before the names are published: %d %s", got.code, got.body)
	}
	if got := r.onAdmin("/readyz"); !strings.Contains(got.body, "[-]proxy-request-headers failed") {
		t.Errorf("readiness: %s", got.body)
	}
	publish := func(event string) {
		a.mu.Lock()
		object, err := json.Marshal(map[string]any{"type": event, "object": a.authenticationConfig()})
		a.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		a.maps <- string(object)
	}
	a.set(func() { a.unpublished = false })
	publish("ADDED")
	r.awaitReady()
	a.set(func() { a.headers = forwarding })
	publish("MODIFIED")
	// left returns the names of the client's headers that the server receives.
	left := func() (names []string) {
		r.get(nobody, common, asRoot...)
		s, _ := a.last(common)
		for name := range s.header {
			if strings.HasPrefix(folded(name), "x-forwarded-") && name != "X-Forwarded-For" {
				names = append(names, name)
			}
		}
		return names
	}
	await(t, "the new names are removed", func() bool { return len(left()) == 0 })
	before := len(a.identities(common))
	got = r.get(nobody, common, asRoot...)
	if users := a.identities(common)[before:]; got.code != http.StatusOK || !slices.Equal(users, []string{"system:anonymous"}) {
		t.Errorf("%d %s: served as %q", got.code, got.body, users)
	}
}

func TestHeaderNamesDisagree(t *testing.T) {
	set := func(key, value string) func(map[string]string) {
		return func(m map[string]string) { m["requestheader-"+key] = value }
	}
	for name, c := range map[string]struct {
		change func(map[string]string)
		want   string // in the error, "" for none
	}{
		"the same":               {func(map[string]string) {}, ""},
		"in another case":        {set("username-headers", `["x-remote-USER"]`), ""},
		"no UIDs":                {set("uid-headers", ""), ""},
		"a longer name":          {set("username-headers", `["X-Remote-User","X-Remote-User2"]`), `"X-Remote-User2"`},
		"a shorter name":         {set("username-headers", `["X-Remote-User","X-Remote-Use"]`), `"X-Remote-Use"`},
		"an underscore":          {set("username-headers", `["X-Remote-User","X_Remote_User"]`), `"X_Remote_User"`},
		"another UID":            {set("uid-headers", `["X-Remote-Uid","X-Uid"]`), `"X-Uid"`},
		"another group":          {set("group-headers", `["X-Remote-Group","X-Group"]`), `"X-Group"`},
		"a wider prefix":         {set("extra-headers-prefix", `["X-Remote-Extra-","X-Remote-"]`), `"X-Remote-"`},
		"a narrower prefix":      {set("extra-headers-prefix", `["X-Remote-Extra-A-"]`), `"X-Remote-Extra-A-"`},
		"not the one written":    {set("username-headers", `[]`), `the proxy writes "X-Remote-User"`},
		"no groups":              {set("group-headers", ""), `the proxy writes "X-Remote-Group"`},
		"no JSON":                {set("group-headers", "X-Remote-Group"), "requestheader-group-headers: invalid"},
		"no front proxies there": {set("client-ca-file", ""), "--requestheader-client-ca-file"},
	} {
		data := map[string]string{
			"requestheader-client-ca-file": "a certificate", "requestheader-username-headers": `["X-Remote-User"]`, "requestheader-uid-headers": `["X-Remote-Uid"]`,
			"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		}
		c.change(data)
		names := &headerNames{own: standardNames}
		switch err := names.compare(data); {
		case c.want == "" && (err != nil || !names.compared()):
			t.Errorf("%s: %v, compared %t; want no error", name, err, names.compared())
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || names.compared()):
			t.Errorf("%s: %v, compared %t; want an error with %s", name, err, names.compared(), c.want)
		}
	}
}

// One sidecar has a name that no server has published yet, so the other one does not know it. A
// client of the other one must not get an identity by a header of this name. Names that everybody
// knows are read.
func TestPeersCannotCarryNamesThatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	first := true // a's options come first
	p := newPair(t, func(o *Options) {
		if first = !first; first {
			o.RequestHeaderUsername = append(o.RequestHeaderUsername, "X-New-User")
			o.RequestHeaderUID = append(o.RequestHeaderUID, "X-New-Uid")
			o.RequestHeaderGroup = append(o.RequestHeaderGroup, "X-New-Group")
			o.RequestHeaderExtraPrefix = append(o.RequestHeaderExtraPrefix, "X-New-Extra-")
		}
	})
	headers := []string{"X-New-User", "root", "X-New-Uid", "0", "X-New-Group", "system:masters", "X-New-Extra-Team", "red"}
	got := p.atA.get(p.user("alice"), farAway, headers...)
	s, _ := p.b.last(farAway)
	if got.code != http.StatusOK || s.user != "alice" || s.uid != "" || slices.Contains(s.groups, "system:masters") || len(s.extra["team"]) > 0 {
		t.Errorf("%d %s; the far server saw %q, uid %q, groups %q, extra %q", got.code, got.body, s.user, s.uid, s.groups, s.extra)
	}
	// Without the hop, a front proxy may use all names of the sidecar's own flags.
	p.atB.get(p.client(&p.proxies, true), farAway, "X-New-User", "bob", "X-New-Group", "team")
	if s, _ := p.b.last(farAway); s.user != "bob" || !slices.Contains(s.groups, "team") {
		t.Errorf("from a front proxy, the server saw %q, groups %q", s.user, s.groups)
	}
	// With the hop, it may use those that everybody knows.
	p.atB.get(p.client(&p.proxies, true), farAway, "X-Remote-User", "carol", "X-Remote-Group", "team", "X-Remote-Uid", "7", "X-Remote-Extra-Team", "blue",
		"X-Kubernetes-Peer-Proxied", "true")
	if s, _ := p.b.last(farAway); s.user != "carol" || !slices.Contains(s.groups, "team") || s.uid != "7" || !slices.Equal(s.extra["team"], []string{"blue"}) {
		t.Errorf("from a peer, the server saw %q, uid %q, groups %q, extra %q", s.user, s.uid, s.groups, s.extra)
	}
}

// A name counts as known to every sidecar while it is published, and no longer.
func TestNamesThatEverybodyKnows(t *testing.T) {
	own := &identityNames{user: []string{"X-Remote-User", "X-Old-User", "X-Only-Here"}}
	names := &headerNames{own: own, log: slog.New(slog.DiscardHandler)}
	// The other kinds do not matter here.
	own.group, own.extra = standardNames.group, standardNames.extra
	known := func() []string { return names.everybodyKnows(func(n *identityNames) []string { return n.user }) }
	if got, want := known(), []string{"X-Remote-User"}; !slices.Equal(got, want) {
		t.Errorf("before any name is published: %q, want %q", got, want)
	}
	for _, c := range []struct {
		published string
		want      []string
	}{
		{`["X-Remote-User","x-old-user"]`, []string{"X-Remote-User", "X-Old-User"}},
		{`["X-Remote-User"]`, []string{"X-Remote-User"}},
		{`["X-Remote-User","X-Old-User","X-New-User"]`, []string{"X-Remote-User", "X-Old-User"}},
		{`[`, []string{"X-Remote-User"}},
	} {
		err := names.compare(map[string]string{
			"requestheader-client-ca-file": "a certificate", "requestheader-username-headers": c.published,
			"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := known(); !slices.Equal(got, c.want) {
			t.Errorf("published %s: %q, want %q", c.published, got, c.want)
		}
	}
}

// Names may be published while a request waits. Then their headers do not reach the peer, and the
// headers that the sidecar writes do. The request itself is not changed, because it may be sent
// again.
func TestLaterNamesDoNotReachAPeer(t *testing.T) {
	names := &headerNames{own: standardNames, log: slog.New(slog.DiscardHandler)}
	data := map[string]string{
		"requestheader-client-ca-file": "a certificate", "requestheader-username-headers": `["X-Remote-User"]`,
		"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}
	var got http.Header
	send := withoutLater{fakeTransport(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return nil, io.EOF
	}), names}
	sent := http.Header{
		"X-Remote-User": {"alice"}, "X-Remote-Extra-Team": {"red"}, "X-New-User": {"root"}, "x_new_extra_a": {"b"}, "X-New": {"c"}, "Accept": {"d"},
	}
	for _, c := range []struct {
		name    string
		publish func()
		without []string
	}{
		{"before", func() {}, nil},
		{"with new names", func() {
			data["requestheader-username-headers"], data["requestheader-extra-headers-prefix"] = `["X-Remote-User","X-New-User"]`, `["X-Remote-Extra-","X-New-Extra-"]`
		}, []string{"X-New-User", "x_new_extra_a"}},
		{"when they are no longer published", func() {
			data["requestheader-username-headers"], data["requestheader-extra-headers-prefix"] = `["X-Remote-User"]`, `["X-Remote-Extra-"]`
		}, []string{"X-New-User", "x_new_extra_a"}},
	} {
		c.publish()
		if err := names.compare(data); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "https://peer/", nil)
		r.Header = sent.Clone()
		if _, err := send.RoundTrip(r); err != io.EOF {
			t.Fatal(err)
		}
		want := sent.Clone()
		for _, name := range c.without {
			delete(want, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(sent, r.Header); diff != "" {
			t.Errorf("%s: the request was changed:\n%s", c.name, diff)
		}
	}
}
