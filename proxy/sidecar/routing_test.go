package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/internal/replay"
)

func TestEveryServerServesTheUnion(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	alice := p.user("alice", "staff")
	for _, at := range []*running{p.atA, p.atB} {
		for path, code := range map[string]int{
			"/apis/both.example/v1/commons":   http.StatusOK,
			"/apis/old.example/v1/relics":     http.StatusOK,
			"/apis/new.example/v2/novelties":  http.StatusOK,
			"/apis/old.example/v1/unheard-of": http.StatusNotFound,
			"/apis/none.example/v1/anything":  http.StatusNotFound,
		} {
			got := at.get(alice, path)
			if got.code != code {
				t.Errorf("%s of %s: %d %s, want %d", path, at.options.ServerID, got.code, got.body, code)
			}
			if got.header.Get("Audit-Id") == "" && code != http.StatusOK {
				// Only the sidecar's own answers have one here.
				t.Errorf("%s of %s: the answer has no Audit-ID", path, at.options.ServerID)
			}
		}
		var list apidiscoveryv2.APIGroupDiscoveryList
		document := at.get(alice, "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if err := json.Unmarshal([]byte(document.body), &list); err != nil {
			t.Fatal(err)
		}
		var groups []string
		for _, g := range list.Items {
			groups = append(groups, g.Name)
		}
		slices.Sort(groups)
		if want := "both.example new.example old.example"; strings.Join(groups, " ") != want {
			t.Errorf("discovery at %s lists %v, want %s", at.options.ServerID, groups, want)
		}
	}
	if s, ok := p.b.last("/apis/new.example/v2/novelties"); !ok || s.user != "alice" || !slices.Contains(s.groups, "staff") || !slices.Contains(s.groups, "system:authenticated") {
		t.Errorf("the far server saw %+v, want alice of staff", s)
	}
}

func TestWatchThroughAPeerIsFlushedAndEndsWithTheClient(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.atA.front+"/apis/new.example/v2/novelties?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.user("alice").Do(request)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(response.Body)
	for i := range 3 { // the next event is sent when the previous one has arrived
		event := fmt.Sprintf(`{"type":"ADDED","object":%d}`, i)
		p.b.events <- event
		got, err := lines.ReadString('\n')
		if err != nil || strings.TrimSpace(got) != event {
			t.Fatalf("event %d arrived as %q, error %v", i, got, err)
		}
	}
	var report PeersReport
	if err := json.Unmarshal([]byte(p.atA.onAdmin(debugPeersPath).body), &report); err != nil || report.Peers[0].InFlight != 1 {
		t.Errorf("while a watch is at the peer, in flight is %+v, error %v", report.Peers, err)
	}
	response.Body.Close()
	await(t, "the watch has ended on all servers", func() bool {
		return len(p.atA.records("/apis/new.example/v2/novelties")) == 1 && len(p.atB.records("/apis/new.example/v2/novelties")) == 1
	})
}

func TestUpgradesPassWithTheUsersIdentity(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.b.set(func() { p.b.tokens["good"] = authenticationv1.UserInfo{Username: "tom"} })
	p.a.set(func() { p.a.tokens["good"] = authenticationv1.UserInfo{Username: "tom"} })
	const token = "base64url.bearer.authorization.k8s.io.Z29vZA"
	for _, test := range []struct {
		protocol, offered, want string
		at                      *running
		by                      *http.Client
		server                  *apiserver
		got                     string // the protocols that the server gets
	}{
		{"websocket", "v5.channel.k8s.io, " + token, "tom", p.atA, p.client(nil, false), p.b, "v5.channel.k8s.io"},
		// The local server reads the token itself.
		{"websocket", "v5.channel.k8s.io, " + token, "tom", p.atB, p.client(nil, false), p.b, "v5.channel.k8s.io, " + token},
		{"SPDY/3.1", "", "carol", p.atA, p.http1("carol"), p.b, ""},
		// The certificate identifies the caller; the token must not reach the server.
		{"websocket", "v5.channel.k8s.io, " + token, "carol", p.atA, p.http1("carol"), p.b, "v5.channel.k8s.io"},
		{"websocket", "v5.channel.k8s.io, " + token, "carol", p.atB, p.http1("carol"), p.b, "v5.channel.k8s.io"},
	} {
		const path = "/apis/new.example/v2/namespaces/default/novelties/x/exec"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+test.at.front+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", test.protocol)
		if test.offered != "" {
			request.Header.Set("Sec-Websocket-Version", "13")
			request.Header.Set("Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
			request.Header.Set("Sec-Websocket-Protocol", test.offered)
		}
		response, err := test.by.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("%s at %s: %s", test.protocol, test.at.options.ServerID, response.Status)
			response.Body.Close()
			continue
		}
		stream := response.Body.(interface {
			Read([]byte) (int, error)
			Write([]byte) (int, error)
		})
		echo := make([]byte, 5)
		if _, err := stream.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := readFull(stream, echo); err != nil || string(echo) != "hello" {
			t.Errorf("%s at %s: sent hello, received %q, error %v", test.protocol, test.at.options.ServerID, echo, err)
		}
		response.Body.Close()
		s, _ := test.server.last(path)
		if s.user != test.want {
			t.Errorf("%s at %s: the server saw %q, want %q", test.protocol, test.at.options.ServerID, s.user, test.want)
		}
		if got := s.header.Get("Sec-Websocket-Protocol"); got != test.got {
			t.Errorf("%s at %s: the server was offered %q, want %q", test.protocol, test.at.options.ServerID, got, test.got)
		}
	}
}

func (w *world) http1(name string) *http.Client {
	cert := w.ca.issue(subject{name: name})
	return w.client(&cert, false)
}

func readFull(r interface{ Read([]byte) (int, error) }, p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m, err := r.Read(p[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// A Connection header removes the headers that it names (RFC 9110, 7.6.1), but not the audit ID.
func TestConnectionHeaderDoesNotRemoveTheAuditID(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for path, server := range map[string]*apiserver{common: p.a, "/apis/new.example/v2/novelties": p.b} {
		got := p.atA.get(p.http1("alice"), path, "Audit-Id", "chosen", "Connection", "Audit-Id, keep-alive")
		s, _ := server.last(path)
		if id := s.header["Audit-Id"]; got.code != http.StatusOK || len(id) != 1 || id[0] != "chosen" {
			t.Errorf("%s: %d, arrived with the audit ID %q, want the client's", path, got.code, id)
		}
	}
}

// If two servers have the same identity, their IDs contain the address. Records have only the
// identity.
func TestRecordHasThePeersIdentity(t *testing.T) {
	request := &accessed{}
	peer := proxy.DuplicateID("apiserver-b", "192.0.2.1:6443")
	newAccessObserver().Attempted(context.WithValue(t.Context(), accessKey{}, request), proxy.Request{}, proxy.AttemptResult{Peer: peer, Answered: true})
	if request.Peer != "apiserver-b" || len(request.Attempts) != 1 || request.Attempts[0].Peer != "apiserver-b" {
		t.Errorf("recorded %q after %+v, want apiserver-b", request.Peer, request.Attempts)
	}
}

func TestAccessLogShowsEveryHop(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	const path = "/apis/new.example/v2/novelties"
	p.atA.get(p.user("alice"), path+"?labelSelector=secret", "Audit-Id", "one-request")
	await(t, "both have written", func() bool { return len(p.atA.records(path)) == 1 && len(p.atB.records(path)) == 1 })
	a, b := p.atA.records(path)[0], p.atB.records(path)[0]
	for what, wrong := range map[string]bool{
		"audit IDs":           a.AuditID != "one-request" || b.AuditID != "one-request",
		"servers":             a.Server != "apiserver-a" || b.Server != "apiserver-b",
		"users":               a.User != "alice" || b.User != "alice",
		"decisions":           a.Decision != "forward" || b.Decision != "local",
		"the peer":            a.Peer != "apiserver-b" || b.Peer != "",
		"attempts":            !slices.Equal(a.Attempts, []AccessAttempt{{"apiserver-b", "answered"}}) || len(b.Attempts) != 0,
		"client addresses":    a.Client != "127.0.0.1" || b.Client != "127.0.0.1",
		"a former peer":       a.FromPeer || !b.FromPeer,
		"what was rerouted":   a.Rerouted || !b.Rerouted,
		"statuses":            a.Status != 200 || b.Status != 200,
		"verbs":               a.Verb != "list" || b.Verb != "list" || a.Method != "GET",
		"the order of events": a.Start.After(b.Start) || b.End.Before(b.Start) || a.End.Before(b.Start),
	} {
		if wrong {
			t.Errorf("%s are wrong:\n%+v\n%+v", what, a, b)
		}
	}
	if s, _ := p.b.last(path); s.header.Get("Audit-Id") != "one-request" || s.query != "labelSelector=secret" {
		t.Errorf("the server got audit ID %q and query %q", s.header.Get("Audit-Id"), s.query)
	}
}

// A record has the address that a kube-apiserver would log, and only a front proxy is believed.
func TestLoggedAddress(t *testing.T) {
	const caller = "192.0.2.7"
	for name, c := range map[string]struct {
		isProxy   bool
		forwarded []string
		want      string
	}{
		"a client":                          {want: caller},
		"a client that claims another one":  {forwarded: []string{"192.0.2.1"}, want: caller},
		"a peer":                            {isProxy: true, forwarded: []string{"192.0.2.1"}, want: "192.0.2.1"},
		"a peer after a load balancer":      {isProxy: true, forwarded: []string{"192.0.2.1, 192.0.2.2"}, want: "192.0.2.1"},
		"a peer with a client in IPv6":      {isProxy: true, forwarded: []string{"2001:DB8::1"}, want: "2001:db8::1"},
		"a peer that says nothing":          {isProxy: true, want: caller},
		"a peer that passes on other words": {isProxy: true, forwarded: []string{"bearer secret"}, want: caller},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: caller + ":4711", Header: http.Header{"X-Forwarded-For": c.forwarded}}
			if got := loggedAddress(r, c.isProxy); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestBodiesArriveUnchanged(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, path := range []string{common, "/apis/new.example/v2/novelties"} {
		server := map[string]*apiserver{common: p.a}[path]
		if server == nil {
			server = p.b
		}
		for _, size := range []int{0, 1, replay.Bound, replay.Bound + 1, 1 << 20} {
			for _, announced := range []bool{true, false} {
				sent := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
				var body io.Reader = bytes.NewReader(sent)
				if !announced {
					body = io.MultiReader(body) // net/http does not know the length of such a body
				}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://"+p.atA.front+path, body)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Content-Type", "application/apply-patch+yaml")
				got := do(t, p.user("alice"), request)
				s, _ := server.last(path)
				if got.code != http.StatusOK || !bytes.Equal(s.body, sent) || s.method != http.MethodPatch || s.header.Get("Content-Type") != "application/apply-patch+yaml" {
					t.Errorf("%s, %d bytes, announced %t: %d; arrived %d bytes by %s as %s", path, size, announced, got.code, len(s.body), s.method, s.header.Get("Content-Type"))
				}
			}
		}
	}
}

// With an Idempotency-Key, net/http would repeat a request that may have been carried out.
func TestIdempotencyKeyRepeatsNothing(t *testing.T) {
	var created atomic.Int64
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "1" {
			t.Errorf("Idempotency-Key arrived as %q", r.Header["Idempotency-Key"])
		}
		if r.Method == http.MethodPost {
			created.Add(1)
			panic(http.ErrAbortHandler)
		}
	}))
	defer far.Close()
	l := newLocal(mustURL(t, far.URL), far.Client().Transport, &headerNames{own: standardNames}, slog.New(slog.DiscardHandler))
	ask := func(method string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, common, strings.NewReader("a body"))
		r.Header.Set("Idempotency-Key", "1")
		w := httptest.NewRecorder()
		l.ServeHTTP(w, r)
		return w
	}
	if got := ask(http.MethodGet); got.Code != http.StatusOK { // a reused connection
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	if got := ask(http.MethodPost); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "" {
		t.Errorf("%d, Retry-After %q, want 503 without Retry-After", got.Code, got.Header().Get("Retry-After"))
	}
	if n := created.Load(); n != 1 {
		t.Errorf("it was carried out %d times, want once", n)
	}
}

// A transport that finds its connection closed uses another one, and sends the whole body again.
func TestShortBodyCanBeSentAgain(t *testing.T) {
	var sent []string
	l := newLocal(mustURL(t, "https://127.0.0.1:1"), fakeTransport(func(r *http.Request) (*http.Response, error) {
		half := make([]byte, 3)
		if _, err := io.ReadFull(r.Body, half); err != nil {
			t.Error(err)
		}
		r.Body.Close()
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(again)
		sent = append(sent, string(half), string(body))
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: r}, err
	}), &headerNames{own: standardNames}, slog.New(slog.DiscardHandler))
	l.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, common, strings.NewReader("a whole body")))
	if want := []string{"a w", "a whole body"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}
