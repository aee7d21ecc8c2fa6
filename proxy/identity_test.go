package proxy

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

var users = map[string]user.Info{
	"plain":   &user.DefaultInfo{Name: "alice"},
	"whole":   &user.DefaultInfo{Name: "system:serviceaccount:ns:sa", UID: "u-1", Groups: []string{"b", "a", "system:authenticated"}, Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {"p", "q"}, "scopes": {"x"}}},
	"escaped": &user.DefaultInfo{Name: "ünï@example.com", Groups: []string{"a, b"}, Extra: map[string][]string{"100%/ké y\n": {"v=1; w"}}},
	"spaces":  &user.DefaultInfo{Name: "Doe, John", Groups: []string{"the group"}},
	"empties": &user.DefaultInfo{Name: "alice", Groups: []string{}, Extra: map[string][]string{"none": {}}},
}

// The headers equal upstream's, name by name and value by value.
func TestIdentityHeadersLikeUpstream(t *testing.T) {
	names, err := IdentityHeaders{}.canonical()
	if err != nil {
		t.Fatal(err)
	}
	for name, u := range users {
		t.Run(name, func(t *testing.T) {
			want := &http.Request{Header: http.Header{}}
			transport.SetAuthProxyHeaders(want, u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra())
			got := http.Header{}
			if err := names.set(got, u); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Header, got); diff != "" {
				t.Errorf("headers (-upstream +ours):\n%s", diff)
			}
		})
	}
}

// A kube-apiserver reads the user from these headers, with any names that are configured.
func TestIdentityHeadersAreReadBack(t *testing.T) {
	for _, configured := range []IdentityHeaders{{}, {User: "x-user", Group: "x-group", ExtraPrefix: "x-extra-"}} {
		names, err := configured.canonical()
		if err != nil {
			t.Fatal(err)
		}
		reader, err := headerrequest.New([]string{names.User}, []string{UIDHeader}, []string{names.Group}, []string{names.ExtraPrefix})
		if err != nil {
			t.Fatal(err)
		}
		for name, u := range users {
			r := &http.Request{Header: http.Header{}}
			if err := names.set(r.Header, u); err != nil {
				t.Fatal(err)
			}
			var got *authenticator.Response
			if got, _, err = reader.AuthenticateRequest(r); err != nil || got == nil {
				t.Fatalf("%s: not authenticated: %v", name, err)
			}
			if got.User.GetName() != u.GetName() || got.User.GetUID() != u.GetUID() || !slices.Equal(got.User.GetGroups(), u.GetGroups()) {
				t.Errorf("%s: arrives as %+v, want %+v", name, got.User, u)
			}
			want := maps.Clone(u.GetExtra())
			maps.DeleteFunc(want, func(_ string, v []string) bool { return len(v) == 0 })
			if diff := cmp.Diff(want, got.User.GetExtra()); diff != "" && len(want)+len(got.User.GetExtra()) > 0 {
				t.Errorf("%s: extra (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestInvalidIdentityIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		user user.Info
		code int
	}{
		"nobody":          {nil, 500},
		"no name":         {&user.DefaultInfo{Groups: []string{"system:masters"}}, 500},
		"control":         {&user.DefaultInfo{Name: "alice\nX-Remote-Group: system:masters"}, 403},
		"space before":    {&user.DefaultInfo{Name: " system:admin"}, 403},
		"tab behind":      {&user.DefaultInfo{Name: "system:admin\t"}, 403},
		"group with both": {&user.DefaultInfo{Name: "alice", Groups: []string{"dev", " system:masters "}}, 403},
		"UID":             {&user.DefaultInfo{Name: "alice", UID: "1 "}, 403},
		"extra":           {&user.DefaultInfo{Name: "alice", Extra: map[string][]string{"k": {"a\x00b"}}}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Reference(), capablePeers(nil, "a"), neverAsked(t)).by(c.user)
			if got := s.ask("GET", gadgetsPath, ""); got.Code != c.code {
				t.Errorf("%d %s, want %d", got.Code, got.Body, c.code)
			}
			if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
				t.Error("the peer is avoided because of the user's name")
			}
		})
	}
}

func TestClientsIdentityHeadersAreDropped(t *testing.T) {
	hostile := http.Header{
		"X-Remote-User":          {"root", "system:admin"},
		"X-Remote-Group":         {"system:masters"},
		"X-Remote-Uid":           {"0"},
		"X-Remote-Extra-Scopes":  {"all"},
		"X-Remote-Extra-%61":     {"all"},
		"X-Remote-Something":     {"new"},
		"X-Own-User":             {"root"},
		"X-Own-Extra-Scopes":     {"all"},
		"Authorization":          {"Bearer secret"},
		"Proxy-Authorization":    {"Basic secret"},
		"Sec-Websocket-Protocol": {"v5.channel.k8s.io", wire.BearerProtocol + "c2VjcmV0, v4.channel.k8s.io"},
	}
	kept := http.Header{
		"Impersonate-User": {"bob"}, "Impersonate-Group": {"x", "y"}, "Impersonate-Extra-Scopes": {"view"}, "Impersonate-Uid": {"7"},
		"Accept": {"application/json"}, "X-Remotely": {"related"},
	}
	for _, c := range []struct {
		configured IdentityHeaders
		options    string // of the Connection header
	}{
		{options: "Upgrade, "}, {options: ""}, {IdentityHeaders{User: "x-own-user", ExtraPrefix: "X-Own-Extra-"}, "Upgrade, "},
	} {
		configured := c.configured
		var sent http.Header
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return says(200, ""), nil
		}), func(config *Config) { config.IdentityHeaders = configured }).by(users["whole"])
		r := httptest.NewRequest("GET", gadgetsPath, nil)
		maps.Copy(r.Header, hostile)
		maps.Copy(r.Header, kept)
		r.Header["Connection"] = []string{c.options + "X-Remote-User, X-Remote-Group, " + RefusedHeader}
		r.Header["Upgrade"] = []string{"websocket"}
		s.serve(r)
		names, _ := configured.canonical()
		if diff := cmp.Diff([]string{"system:serviceaccount:ns:sa"}, sent[names.User]); diff != "" {
			t.Errorf("user (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"b", "a", "system:authenticated"}, sent["X-Remote-Group"]); diff != "" {
			t.Errorf("groups (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"v5.channel.k8s.io, v4.channel.k8s.io"}, sent["Sec-Websocket-Protocol"]); diff != "" {
			t.Errorf("protocols (-want +got):\n%s", diff)
		}
		for name, values := range sent {
			for _, v := range values {
				if strings.Contains(v, "secret") || strings.Contains(v, "c2VjcmV0") || v == "root" || v == "system:masters" || v == "all" || v == "0" || v == "new" {
					if configured.User == "" && strings.HasPrefix(strings.ToLower(name), "x-own-") {
						continue // these headers carry no identity where they are not configured
					}
					t.Errorf("the client's own %s: %q was sent on", name, v)
				}
			}
		}
		for name, values := range kept {
			if diff := cmp.Diff(values, sent[name]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff([]string{"root", "system:admin"}, r.Header["X-Remote-User"]); diff != "" {
			t.Error("the caller's own request was changed")
		}
	}
}

func TestConnectionCannotDropImpersonation(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), neverAsked(t))
	if got := s.ask("GET", gadgetsPath, "", "Connection", "close, impersonate-nothing", "Impersonate-Nothing", "bob"); got.Code != 400 {
		t.Errorf("%d %s, want 400: an impersonating client must not be able to drop the header on the way", got.Code, got.Body)
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add("alice", "1", "dev", "scopes", "view", "X-Remote-User", "root")
	f.Add("ü", "", " ", "a/b%", "\n", "x-remote-extra-a", "x")
	f.Add("", "", "", "", "", "", "")
	names, err := IdentityHeaders{}.canonical()
	if err != nil {
		f.Fatal(err)
	}
	reader, err := headerrequest.New([]string{names.User}, []string{UIDHeader}, []string{names.Group}, []string{names.ExtraPrefix})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, uid, group, key, value, header, clients string) {
		u := &user.DefaultInfo{Name: name, UID: uid, Groups: []string{group}, Extra: map[string][]string{strings.ToLower(key): {value}}}
		r := httptest.NewRequest("GET", gadgetsPath, nil)
		if httpguts.ValidHeaderFieldName(header) { // a server refuses others
			r.Header.Set(header, clients)
		}
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			var wire strings.Builder // the header as a server reads it
			if err := r.Header.Write(&wire); err != nil {
				t.Fatal(err)
			}
			got, err := readHeader(wire.String())
			if err != nil {
				t.Fatalf("cannot be read: %v\n%q", err, wire.String())
			}
			who, _, err := reader.AuthenticateRequest(&http.Request{Header: got})
			if err != nil || who == nil {
				t.Fatalf("not authenticated: %v", err)
			}
			if who.User.GetName() != name || who.User.GetUID() != uid {
				t.Errorf("arrives as %+v, want %+v", who.User, u)
			}
			if groups := who.User.GetGroups(); group != "" && !slices.Equal(groups, []string{group}) {
				t.Errorf("arrives in %q, want %q", groups, group)
			}
			for k, v := range who.User.GetExtra() {
				if k != strings.ToLower(key) && !strings.EqualFold(k, key) || !slices.Equal(v, []string{value}) {
					t.Errorf("arrives with %q: %q, want %q: %q", k, v, key, value)
				}
			}
			return says(200, ""), nil
		})).by(u)
		switch got := s.serve(r); got.Code {
		case 200, 400, 403, 500:
		default:
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

// Header names have no case: two such keys would arrive as one key, with the values of both.
func TestExtraKeysThatDifferInCaseAreRefused(t *testing.T) {
	names, err := IdentityHeaders{}.canonical()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		extra   map[string][]string
		refused bool
	}{
		{map[string][]string{"scopes": {"a"}, "Scopes": {"b"}}, true},
		{map[string][]string{"example.com/a": {"a"}, "example.com/A": {"b"}}, true},
		{map[string][]string{"ké": {"a"}, "Ké": {"b"}, "x": {"c"}}, true},
		{map[string][]string{"Scopes": {"b"}}, false},
		{map[string][]string{"scopes": {"a"}, "scope": {"b"}, "scopes2": {"c"}}, false},
		{map[string][]string{"a-b": {"a"}, "a_b": {"b"}}, false},
	} {
		if err := names.set(http.Header{}, &user.DefaultInfo{Name: "alice", Extra: c.extra}); (err != nil) != c.refused {
			t.Errorf("%v: %v; want refused %t", c.extra, err, c.refused)
		}
	}
}
