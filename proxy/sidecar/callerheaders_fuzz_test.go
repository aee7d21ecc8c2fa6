package sidecar

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// For all headers that a client may send, the local server reads the identity that the sidecar
// asserts, and no other. This holds for the sidecar's own header names and for the published ones.
// The local server gets no header of the hop and no credentials.
func FuzzHeadersForTheLocalServer(f *testing.F) {
	for _, name := range []string{"X-Remote-User", "x_remote_group", "X-Forwarded-User ", "X-Kubernetes-Peer-Proxied", "x-remote-extra-", "Authorization", "X-A"} {
		f.Add(name, "root", "Connection", name)
		f.Add("Connection", name, name, "root")
	}
	names := &headerNames{own: standardNames}
	names.published.Store(forwarding)
	l := newLocal(mustURL(f, "https://127.0.0.1:1"), nil, names, slog.New(slog.DiscardHandler))
	alice := &user.DefaultInfo{Name: "alice", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"scopes": {"x"}}}
	special := func(h http.Header) http.Header {
		kept := http.Header{}
		for key, values := range h {
			if key != "X-Forwarded-For" && (standardNames.match(key) || forwarding.match(key) || slices.Contains(hopHeaders, folded(key)) || folded(key) == "authorization") {
				kept[key] = values
			}
		}
		return kept
	}
	sent := func(client http.Header) http.Header {
		in := httptest.NewRequest(http.MethodGet, common, nil)
		in.Header = client
		in = in.WithContext(withCallerOf(in.Context(), &caller{asserted: alice}))
		out := in.Clone(in.Context())
		l.direct(out, in)
		return special(out.Header)
	}
	want := sent(http.Header{})
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		client := http.Header{name1: {value1}}
		client[name2] = append(client[name2], value2)
		client.Add(name1, value2)
		if diff := cmp.Diff(want, sent(client)); diff != "" {
			t.Errorf("the local server gets (-want +got):\n%s", diff)
		}
	})
}

// The sidecar finds the same tokens as a kube-apiserver does, in the same order. It takes a request
// for one without credentials only if a kube-apiserver does.
func FuzzReadTokens(f *testing.F) {
	for _, authorization := range []string{"Bearer good", "bearer  good", "Bearer", "Bearer good more", "Basic eDp5", " Bearer good", "Bearer\tgood"} {
		f.Add(authorization, "", "")
		f.Add(authorization, "websocket", wire.BearerProtocol+"Z29vZA, v4.channel.k8s.io")
	}
	f.Add("", "websocket", wire.BearerProtocol+"Z29vZA")
	f.Add("", "WebSocket", wire.BearerProtocol+"=,x")
	f.Add("", "websocket", wire.BearerProtocol+"Z29vZA,"+wire.BearerProtocol+"YmFk")
	i := newIdentities(nil, nil, time.Minute, slog.New(slog.DiscardHandler))
	f.Fuzz(func(t *testing.T, authorization, upgrade, protocols string) {
		request := func() *http.Request {
			r := httptest.NewRequest(http.MethodGet, common, nil)
			r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {upgrade}, "Sec-Websocket-Protocol": {protocols}}
			if authorization != "" {
				r.Header["Authorization"] = []string{authorization}
			}
			return r
		}
		// tried returns the tokens that a kube-apiserver tries, if the good one is accepted.
		tried := func(good string) (tokens []string, accepted, failed bool) {
			judge := authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
				tokens = append(tokens, token)
				return &authenticator.Response{User: &user.DefaultInfo{Name: "x"}}, token == good, nil
			})
			r := request()
			for _, by := range []authenticator.Request{bearertoken.New(judge), websocket.NewProtocolAuthenticator(judge)} {
				_, ok, err := by.AuthenticateRequest(r)
				if ok {
					return tokens, true, false
				}
				failed = failed || err != nil
			}
			return tokens, false, failed
		}
		c := &caller{of: i}
		found := c.readTokens(request())
		want, _, failed := tried("\x00")
		var got []string
		for _, b := range c.tokens {
			got = append(got, b.token)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("found the tokens %q, a kube-apiserver tries %q", got, want)
		}
		if failed && !found {
			t.Errorf("a kube-apiserver refuses the request, and the sidecar finds no credentials in it")
		}
		if failed && len(c.tokens) == 0 && c.nobody() {
			t.Errorf("a kube-apiserver refuses the request, and the sidecar treats its caller as anonymous")
		}
		for n, token := range want {
			if all, ok, _ := tried(token); !ok || len(all) > n+1 {
				t.Errorf("if %q is good, a kube-apiserver tries %q", token, all)
			}
		}
		h := request().Header
		wire.DropTokenProtocols(h)
		if strings.Contains(strings.Join(h["Sec-Websocket-Protocol"], ","), ","+wire.BearerProtocol) || strings.HasPrefix(strings.Join(h["Sec-Websocket-Protocol"], ","), wire.BearerProtocol) {
			t.Errorf("a peer would get the token in %q", h)
		}
	})
}

// If the names of a ConfigMap agree with the sidecar's, each of them is removed from requests, and
// the name that the sidecar writes is among them.
func FuzzReadNames(f *testing.F) {
	f.Add("a certificate", `["X-Remote-User"]`, `["X-Remote-Uid"]`, `["X-Remote-Group"]`, `["X-Remote-Extra-"]`)
	f.Add("a certificate", `["x-remote-user","X-Remote-User"]`, "", `["X-Remote-Group"]`, `["X-Remote-Extra-"]`)
	f.Add("", `["X-Remote-User"`, `null`, `{}`, `[""]`)
	f.Fuzz(func(t *testing.T, ca, users, uids, groups, extra string) {
		data := map[string]string{
			"requestheader-client-ca-file": ca, "requestheader-username-headers": users, "requestheader-uid-headers": uids,
			"requestheader-group-headers": groups, "requestheader-extra-headers-prefix": extra,
		}
		n := &headerNames{own: standardNames}
		if err := n.compare(data); err != nil {
			if n.compared() {
				t.Fatal("the names count as compared in spite of ", err)
			}
			return
		}
		removed := func(name string) bool {
			h := http.Header{name: {"root"}}
			n.drop(h)
			return len(h) == 0
		}
		for key, list := range map[string]string{"users": users, "uids": uids, "groups": groups, "extra": extra} {
			var read []string
			if json.Unmarshal([]byte(list), &read) != nil && list != "" {
				t.Fatalf("%s cannot be read, but no error was returned: %q", key, list)
			}
			for _, name := range read {
				if key == "extra" {
					name += "x"
				}
				if !removed(name) {
					t.Errorf("a server reads %q, and it is not removed", name)
				}
			}
		}
		for _, written := range []string{"X-Remote-User", "X-Remote-Group"} {
			if !strings.Contains(strings.ToLower(users+groups), strings.ToLower(written)) && !strings.Contains(users+groups, `\`) {
				t.Errorf("no server reads %s", written)
			}
		}
	})
}
