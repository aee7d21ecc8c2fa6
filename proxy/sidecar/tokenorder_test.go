package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// namedReviews answers by the token: "ok-NAME" is NAME's, "bad" is refused, "down" gets no answer.
type namedReviews struct {
	authenticationclient.SelfSubjectReviewInterface
	asked []string
}

func (n *namedReviews) Create(ctx context.Context, r *authenticationv1.SelfSubjectReview, _ metav1.CreateOptions) (*authenticationv1.SelfSubjectReview, error) {
	token := ctx.Value(tokenKey{}).(string)
	n.asked = append(n.asked, token)
	name, good := strings.CutPrefix(token, "ok-")
	switch {
	case good:
		r.Status.UserInfo.Username = name
		return r, nil
	case token == "bad":
		return nil, apierrors.NewUnauthorized("")
	}
	return nil, errors.New("out of reach")
}

// A request may have several tokens. Its user is that of the first good one. If it is not known
// whether a token is good, the tokens after it do not count.
func TestUserOfSeveralTokens(t *testing.T) {
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	for _, c := range []struct {
		tokens    string
		malformed bool
		anonymous user.Info
		want      string // the user, or the reason of the error
		asked     string
	}{
		{"ok-a", false, anonymous, "a", "ok-a"},
		{"ok-a ok-b", false, anonymous, "a", "ok-a"},
		{"bad ok-b", false, anonymous, "b", "bad ok-b"},
		{"bad bad", false, anonymous, "Unauthorized", "bad"}, // the second refusal is cached
		{"bad", false, anonymous, "Unauthorized", "bad"},     // never anonymous
		{"down ok-b", false, anonymous, "ServiceUnavailable", "down"},
		{"bad down", false, anonymous, "ServiceUnavailable", "bad down"},
		{"ok-a down", false, anonymous, "a", "ok-a"},
		{"ok-a", true, anonymous, "a", "ok-a"},
		{"bad", true, anonymous, "Unauthorized", "bad"},
		{"", true, anonymous, "Unauthorized", ""},
		{"", false, anonymous, user.Anonymous, ""},
		{"", false, nil, "Unauthorized", ""},
		{"bad", false, nil, "Unauthorized", "bad"},
	} {
		server := &namedReviews{}
		i := newIdentities(server, nil, time.Minute, slog.New(slog.DiscardHandler))
		of := &caller{malformed: c.malformed, anonymous: c.anonymous, of: i}
		for _, token := range strings.Fields(c.tokens) {
			of.tokens = append(of.tokens, i.bearer(token))
		}
		if nobody := c.tokens == "" && !c.malformed; of.nobody() != nobody {
			t.Errorf("%+v: nobody %t, want %t", c, of.nobody(), nobody)
		}
		var got string
		u, err := of.identify(t.Context())
		if err != nil {
			got = string(apierrors.ReasonForError(err))
		} else {
			got = u.GetName()
		}
		if asked := strings.Join(server.asked, " "); got != c.want || asked != c.asked {
			t.Errorf("%+v: %s, asked about %q", c, got, asked)
		}
		if u, ok := of.user(); ok != (err == nil && c.tokens != "") || ok && u.GetName() != c.want {
			t.Errorf("%+v: afterwards the user is known %t, %v", c, ok, u)
		}
	}
}

// Which user a request with several tokens has is not clear from what is known about one of them.
func TestKnownTokensAmongSeveral(t *testing.T) {
	server := &namedReviews{}
	i := newIdentities(server, nil, time.Minute, slog.New(slog.DiscardHandler))
	if _, err := i.identify(t.Context(), i.bearer("ok-a"), ""); err != nil {
		t.Fatal(err)
	}
	for tokens, want := range map[string]string{"ok-a": "a", "ok-a ok-b": "", "ok-b ok-a": "", "ok-b": "", "": ""} {
		c := &caller{of: i, address: "192.0.2.1"}
		for _, token := range strings.Fields(tokens) {
			c.tokens = append(c.tokens, i.bearer(token))
		}
		if got := c.name(t.Context()); got != want {
			t.Errorf("%q: %q, want %q", tokens, got, want)
		}
		if seat := c.seat(); (seat == want) != (want != "") || want == "" && seat != "\x00192.0.2.1" {
			t.Errorf("%q: the seat is %q's", tokens, seat)
		}
	}
}

// The user of a token is learnt as soon as the local server has accepted it, if the request needs
// it: for the access log, or because its body takes memory.
func TestWhenTheUserOfATokenIsLearnt(t *testing.T) {
	for name, c := range map[string]struct {
		logs     bool
		body     string
		tokens   int
		accepted bool // before
		status   int
		wanted   bool
		trusted  bool
		asked    int
	}{
		"for the log":                   {true, "", 1, false, 200, true, false, 1},
		"for the body":                  {false, "x", 1, false, 200, true, false, 1},
		"for nothing":                   {false, "", 1, false, 200, false, false, 0},
		"accepted before":               {true, "", 1, true, 200, true, true, 1},
		"accepted before, for nothing":  {false, "", 1, true, 200, false, true, 0},
		"refused":                       {true, "", 1, false, 401, true, false, 0},
		"not judged":                    {true, "", 1, false, 503, true, false, 0},
		"one of two":                    {true, "", 2, false, 200, true, false, 0},
		"one of two, accepted before":   {true, "", 2, true, 200, true, false, 0},
		"no tokens":                     {true, "", 0, false, 200, true, false, 0},
		"served after it was forbidden": {true, "", 1, false, 403, true, false, 1},
	} {
		server := &namedReviews{}
		i := newIdentities(server, nil, time.Minute, slog.New(slog.DiscardHandler))
		w := newWorld(t)
		a := newAuthentication(&Options{AnonymousAuth: true, AccessLog: map[bool]string{true: "x"}[c.logs]}, &credentials{clientCA: w.authoritiesOf(w.ca), requestHeaderCA: w.authoritiesOf(w.frontCA)},
			&headerNames{own: standardNames}, i, nil, slog.New(slog.DiscardHandler))
		r := httptest.NewRequest(http.MethodPost, common, strings.NewReader(c.body))
		switch c.tokens {
		case 0:
			r.Header.Set("Authorization", "Basic x")
		case 2:
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-Websocket-Protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.b2stYg") // ok-b
			fallthrough
		case 1:
			r.Header.Set("Authorization", "Bearer ok-a")
		}
		if c.accepted {
			i.accept(i.bearer("ok-a"))
		}
		by, err := a.caller(r)
		if err != nil || by.wanted != c.wanted || by.trusted != c.trusted || len(by.tokens) != c.tokens || by.apart() == c.trusted {
			t.Errorf("%s: %+v, apart %t, error %v", name, by, by.apart(), err)
			continue
		}
		by.answered(r, c.status)
		if by.name(t.Context()) != map[int]string{1: "a"}[c.asked] || len(server.asked) != c.asked {
			t.Errorf("%s: the name is %q after %d questions, want %d", name, by.name(t.Context()), len(server.asked), c.asked)
		}
	}
}

// authoritiesOf returns a bundle with one authority.
func (w *world) authoritiesOf(a *authority) *authorities {
	w.t.Helper()
	bundle, err := loadAuthorities("a test's authority", writeFile(w.t, w.t.TempDir(), "ca.crt", a.pem))
	if err != nil {
		w.t.Fatal(err)
	}
	return bundle
}
