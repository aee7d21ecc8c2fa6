package sidecar

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	selfReviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	farAway     = "/apis/new.example/v2/novelties" // only b serves it
)

// knowToken makes both servers of a pair accept a token.
func (p *pair) knowToken(token string, u authenticationv1.UserInfo) {
	for _, a := range []*apiserver{p.a, p.b} {
		a.set(func() { a.tokens[token] = u })
	}
}

func (a *apiserver) reviewed() (tokens, access int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tokenReviews, a.accessReviews
}

// A request that the local server serves needs no review, because the local server judges the token
// itself. Only a request that is sent to a peer needs a review. The peer gets the user and never
// the token.
func TestTokensAreReviewedOnlyForPeers(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(o *Options) { o.AccessLog = "" })
	p.knowToken("good", authenticationv1.UserInfo{Username: "bot", UID: "7", Groups: []string{"bots"}, Extra: map[string]authenticationv1.ExtraValue{"key": {"id"}}})
	anyone := p.client(nil, true)
	for range 5 {
		if got := p.atA.get(anyone, common, "Authorization", "Bearer good"); got.code != http.StatusOK {
			t.Fatalf("%d %s", got.code, got.body)
		}
	}
	if n := p.a.count(selfReviews); n != 0 {
		t.Errorf("%d reviews for a resource of the local server, want none", n)
	}
	for range 5 {
		if got := p.atA.get(anyone, farAway, "Authorization", "Bearer good", "Impersonate-User", "alice"); got.code != http.StatusOK {
			t.Fatalf("%d %s", got.code, got.body)
		}
	}
	if n := p.a.count(selfReviews); n != 1 {
		t.Errorf("%d reviews of one token, want 1", n)
	}
	s, _ := p.b.last(farAway)
	if s.user != "bot" || s.uid != "7" || fmt.Sprint(s.groups) != "[bots system:authenticated]" || fmt.Sprint(s.extra) != "map[key:[id]]" || s.header.Get("Impersonate-User") != "alice" {
		t.Errorf("the peer's server saw %+v", s)
	}
	for name, values := range s.header {
		if strings.Contains(fmt.Sprint(name, values), "good") || name == "Authorization" {
			t.Errorf("the peer's server got %s: %q", name, values)
		}
	}
	if n, _ := p.a.reviewed(); n != 0 {
		t.Errorf("%d TokenReviews, want none", n)
	}
}

// A server may accept the authority of front proxies for client certificates too. If the connection
// had the front-proxy certificate, such a server would take a caller with a token for the front
// proxy.
func TestTokensComeWithoutOurCertificate(t *testing.T) {
	a, r := one(t)
	a.set(func() {
		a.clients = pool(r.frontCA)
		a.tokens["good"] = authenticationv1.UserInfo{Username: "bot"}
	})
	for range 2 { // over HTTP/1.1, then over HTTP/2
		got := r.get(r.client(nil, true), common, "Authorization", "Bearer good")
		if s, _ := a.last(common); got.code != http.StatusOK || s.user != "bot" || s.certified {
			t.Errorf("%d %s: the local server saw %q", got.code, got.body, s.user)
		}
	}
	if got := r.get(r.client(nil, true), common, "Authorization", "Bearer bad"); got.code != http.StatusUnauthorized {
		t.Errorf("a bad token: %d %s, want 401", got.code, got.body)
	}
}

// Requests with a token share connections with others only after the server has accepted the token,
// and no longer after it has refused the token.
func TestOnlyAcceptedTokensShareConnections(t *testing.T) {
	a, r := one(t)
	a.set(func() { a.tokens["good"] = authenticationv1.UserInfo{Username: "bot"} })
	proto := func(path string, headers ...string) int {
		t.Helper()
		r.get(r.client(nil, len(headers) == 0), path, append([]string{"Authorization", "Bearer good"}, headers...)...)
		s, ok := a.last(path)
		if !ok {
			return 0
		}
		return s.proto
	}
	// 400, before authentication, proves nothing.
	if got := r.get(r.client(nil, true), common+"?timeout=x", "Authorization", "Bearer good"); got.code != http.StatusBadRequest {
		t.Fatalf("%d %s, want 400", got.code, got.body)
	}
	if got := proto(common); got != 1 {
		t.Errorf("the first request used HTTP/%d, want 1", got)
	}
	if got := proto(common); got != 2 {
		t.Errorf("the second request used HTTP/%d, want 2", got)
	}
	// If a request lost its credentials on the way, the server would end the connection for all
	// requests.
	if s := proto(common+"/named", "Connection", "Authorization"); s != 2 {
		t.Errorf("HTTP/%d, want 2", s)
	}
	if s, _ := a.last(common + "/named"); s.user != "bot" {
		t.Errorf("a request whose Connection header names Authorization is %q's, want bot's", s.user)
	}
	a.set(func() { delete(a.tokens, "good") })
	if got := r.get(r.client(nil, true), common, "Authorization", "Bearer good"); got.code != http.StatusUnauthorized {
		t.Fatalf("%d %s, want 401", got.code, got.body)
	}
	a.set(func() { a.tokens["good"] = authenticationv1.UserInfo{Username: "bot"} })
	if got := proto(common); got != 1 {
		t.Errorf("after a refusal: HTTP/%d, want 1", got)
	}
	// A token that the server does not read is never accepted.
	for range 2 {
		r.get(r.client(nil, true), common, "Authorization", "Basic cm9vdDpyb290")
		if s, _ := a.last(common); s.proto != 1 {
			t.Errorf("an anonymous request used HTTP/%d, want 1", s.proto)
		}
	}
}

// The local server sees the request's own credentials, so its answer about them reaches the client.
func TestWarningsAboutTokensReachTheClient(t *testing.T) {
	_, r := one(t)
	got := r.get(r.client(nil, true), common, "Authorization", "Bearer  x")
	if warning := got.header.Get("Warning"); got.code != http.StatusOK || !strings.Contains(warning, "extra space before the bearer token") {
		t.Errorf("%d, warning %q", got.code, warning)
	}
}

// A request for a peer needs the user of its token. The answer depends on what the local
// server says about the token.
func TestWhoseTokenItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token    string
		adjust   func(*apiserver)
		code     int
		message  string
		retry    string
		user     string
		reviewed int // TokenReviews
	}{
		"known":                           {token: "good", code: http.StatusOK, user: "bot"},
		"refused":                         {token: "bad", code: http.StatusUnauthorized, message: "Unauthorized"},
		"unanswered":                      {token: "good", adjust: func(a *apiserver) { a.noReviews = true }, code: http.StatusServiceUnavailable, message: "the local kube-apiserver cannot be asked", retry: "1"},
		"not allowed":                     {token: "good", adjust: func(a *apiserver) { a.forbids = mayNotReview }, code: http.StatusServiceUnavailable, message: "may not create selfsubjectreviews.authentication.k8s.io", retry: "1"},
		"before v1.28":                    {token: "good", adjust: func(a *apiserver) { a.older = true }, code: http.StatusOK, user: "bot", reviewed: 1},
		"before v1.28, refused":           {token: "bad", adjust: func(a *apiserver) { a.older = true }, code: http.StatusUnauthorized, message: "Unauthorized"},
		"before v1.28, unanswered":        {token: "good", adjust: func(a *apiserver) { a.older, a.noReviews = true, true }, code: http.StatusServiceUnavailable, message: "cannot be asked", retry: "1", reviewed: 1},
		"a name that headers can't carry": {token: "sly", code: http.StatusForbidden, message: "begins or ends with white space"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			p.knowToken("good", authenticationv1.UserInfo{Username: "bot"})
			p.knowToken("sly", authenticationv1.UserInfo{Username: "sly", Groups: []string{" system:masters"}})
			if c.adjust != nil {
				p.a.set(func() { c.adjust(p.a) })
			}
			got := p.atA.get(p.client(nil, true), farAway, "Authorization", "Bearer "+c.token)
			s, arrived := p.b.last(farAway)
			if got.code != c.code || got.header.Get("Retry-After") != c.retry || arrived != (c.user != "") || s.user != c.user {
				t.Errorf("%d %s, Retry-After %q; the peer saw %q", got.code, got.body, got.header.Get("Retry-After"), s.user)
			}
			if c.message != "" && !strings.Contains(got.status(t).Message, c.message) || strings.Contains(got.body, c.token) && c.token != "sly" {
				t.Errorf("the answer says %s, want %q in it and not the token", got.body, c.message)
			}
			if arrived && !strings.Contains(fmt.Sprint(s.groups), "system:authenticated") {
				t.Errorf("the peer saw the groups %q", s.groups)
			}
			if n, _ := p.a.reviewed(); n != c.reviewed && c.reviewed != 0 || n > 0 && c.adjust == nil {
				t.Errorf("%d TokenReviews, want %d", n, c.reviewed)
			}
		})
	}
}

func mayNotReview(at authorizer.Attributes) bool { return at.GetResource() == "selfsubjectreviews" }

// The access log has the user of requests with tokens too. The sidecar asks once for each token.
func TestAccessLogKnowsTheBearersOfTokens(t *testing.T) {
	a, r := one(t)
	a.set(func() { a.tokens["good"] = authenticationv1.UserInfo{Username: "bot"} })
	const n = 5
	for range n {
		r.get(r.client(nil, true), common, "Authorization", "Bearer good")
	}
	r.get(r.client(nil, true), common, "Authorization", "Bearer bad")
	await(t, "all are logged", func() bool { return len(r.records(common)) == n+1 })
	for i, record := range r.records(common) {
		want, status := "bot", http.StatusOK
		if i == n {
			want, status = "", http.StatusUnauthorized
		}
		if record.User != want || record.Status != status {
			t.Errorf("record %d: status %d, user %q; want %d, %q", i, record.Status, record.User, status, want)
		}
	}
	if got := a.count(selfReviews); got != 1 {
		t.Errorf("%d reviews, want 1: refused tokens need none", got)
	}
}

// Many requests with a new token at the same time cause only one question.
func TestRequestsWithOneTokenShareAReview(t *testing.T) {
	p := newPair(t, func(o *Options) { o.AccessLog = "" })
	p.knowToken("good", authenticationv1.UserInfo{Username: "bot"})
	client := p.client(nil, true)
	var all sync.WaitGroup
	for range 100 { // more than the reviews of one client that may wait
		all.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.atA.front+farAway, nil)
			r.Header.Set("Authorization", "Bearer good")
			answer, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s", answer.Status)
			}
		})
	}
	all.Wait()
	if n := p.a.count(selfReviews); n != 1 {
		t.Errorf("%d reviews, want 1", n)
	}
}
