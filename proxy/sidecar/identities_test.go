package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// reviewer is a server that returns the user of the token in a context.
type reviewer struct {
	authenticationclient.SelfSubjectReviewInterface
	asked int
	users map[string]string // by token
	wait  chan struct{}     // nil: answers at once
}

func (s *reviewer) Create(ctx context.Context, r *authenticationv1.SelfSubjectReview, _ metav1.CreateOptions) (*authenticationv1.SelfSubjectReview, error) {
	s.asked++
	if s.wait != nil {
		<-s.wait
	}
	name := s.users[ctx.Value(tokenKey{}).(string)]
	if name == "" {
		return nil, apierrors.NewUnauthorized("")
	}
	r.Status.UserInfo.Username = name
	return r, nil
}

// The user of a token is cached for a time, and a refusal for a shorter time. Neither is cached for
// ever.
func TestHowLongTokensAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reviewer{users: map[string]string{"good": "bot"}}
		i := newIdentities(s, nil, 10*time.Second, slog.New(slog.DiscardHandler))
		for _, step := range []struct {
			after time.Duration
			token string
			asked int // the number of questions in total
		}{
			{0, "good", 1}, {9 * time.Second, "good", 1}, {2 * time.Second, "good", 2},
			{0, "bad", 3}, {refusedTTL - time.Millisecond, "bad", 3}, {2 * time.Millisecond, "bad", 4}, {0, "other", 5},
		} {
			time.Sleep(step.after)
			u, err := i.identify(t.Context(), i.bearer(step.token), "192.0.2.1")
			if good := step.token == "good"; good && (err != nil || u.GetName() != "bot") || !good && err != errTokenRefused {
				t.Errorf("%q: %v, %v", step.token, u, err)
			}
			if s.asked != step.asked {
				t.Errorf("%q, %s later: %d questions, want %d", step.token, step.after, s.asked, step.asked)
			}
		}
		if !i.isAccepted(i.bearer("good")) || i.isAccepted(i.bearer("bad")) {
			t.Error("the accepted tokens do not match the expected ones")
		}
		time.Sleep(acceptedFor)
		if i.isAccepted(i.bearer("good")) {
			t.Errorf("after %s without a request, the token still counts as accepted", acceptedFor)
		}
		if _, ok := i.user(i.bearer("good")); ok {
			t.Error("the user is remembered for longer than the time for it")
		}
	})
}

// A client that invents tokens uses only a bounded amount of memory. It does not keep other clients
// from asking.
func TestTokensThatAreMadeUpAreBounded(t *testing.T) {
	s := &reviewer{users: map[string]string{"good": "bot"}}
	i := newIdentities(s, nil, time.Minute, slog.New(slog.DiscardHandler))
	honest := i.bearer("good")
	if u, err := i.identify(t.Context(), honest, "192.0.2.2"); err != nil || u.GetName() != "bot" {
		t.Fatalf("%v, %v", u, err)
	}
	for n := range maxTokens + 100 {
		i.accept(i.bearer(fmt.Sprint("accepted ", n)))
		_, _ = i.identify(t.Context(), i.bearer(fmt.Sprint(n)), "192.0.2.1")
	}
	if unknown, accepted := len(i.unknown.Keys()), len(i.accepted.Keys()); unknown != maxTokens || accepted != maxTokens {
		t.Errorf("%d refused and %d accepted tokens are kept, want %d", unknown, accepted, maxTokens)
	}
	if u, ok := i.user(honest); !ok || u.GetName() != "bot" {
		t.Errorf("the user of a good token (%v) was pushed out by tokens that were made up", u)
	}
	for _, key := range append(i.known.Keys(), i.unknown.Keys()...) {
		if s := fmt.Sprint(key); len(s) != 32 {
			t.Fatalf("a key is %q, want a hash", s)
		}
	}

	synctest.Test(t, func(t *testing.T) {
		s := &reviewer{users: map[string]string{"good": "bot"}, wait: make(chan struct{})}
		i := newIdentities(s, nil, time.Minute, slog.New(slog.DiscardHandler))
		refused := 0
		for n := range maxReviews {
			go func() {
				var status *apierrors.StatusError
				if _, err := i.identify(context.Background(), i.bearer(fmt.Sprint("made up ", n)), "192.0.2.1"); errors.As(err, &status) && status.ErrStatus.Code == http.StatusTooManyRequests {
					refused++
				}
			}()
			synctest.Wait()
		}
		if refused != maxReviews-maxReviews/4 {
			t.Errorf("one client has %d of %d reviews, want a quarter", maxReviews-refused, maxReviews)
		}
		go func() {
			if u, err := i.identify(context.Background(), i.bearer("good"), "192.0.2.2"); err != nil || u.GetName() != "bot" {
				t.Errorf("another client: %v, %v", u, err)
			}
		}()
		synctest.Wait()
		close(s.wait)
		synctest.Wait()
	})
}

// Callers share seats by user. While a user is not known, the caller shares seats by address, so
// that a client that invents tokens counts as one caller.
func TestSeatsOfCallers(t *testing.T) {
	i := newIdentities(&reviewer{users: map[string]string{"good": "bot"}}, nil, time.Minute, slog.New(slog.DiscardHandler))
	seat := func(address, token string) string {
		return (&caller{tokens: []bearer{i.bearer(token)}, address: address, of: i}).seat()
	}
	if seat("192.0.2.1", "a") != seat("192.0.2.1", "b") || seat("192.0.2.1", "a") == seat("192.0.2.2", "a") {
		t.Error("unknown tokens do not share by address")
	}
	if _, err := i.identify(t.Context(), i.bearer("good"), ""); err != nil {
		t.Fatal(err)
	}
	if got := seat("192.0.2.1", "good"); got != "bot" {
		t.Errorf("the seat of a known token is %q's, want bot's", got)
	}
	asserted := &caller{asserted: &user.DefaultInfo{Name: "alice"}}
	if got := asserted.seat(); got != "alice" {
		t.Errorf("the seat of alice is %q's", got)
	}
}

// The sidecar finds the same tokens of a request as a kube-apiserver, in the same order.
func TestTokensOfARequest(t *testing.T) {
	i := newIdentities(nil, nil, time.Minute, slog.New(slog.DiscardHandler))
	const a, b = "base64url.bearer.authorization.k8s.io.YQ", "base64url.bearer.authorization.k8s.io.Yg" // a, b
	for _, c := range []struct {
		authorization, protocols string
		tokens                   string
		malformed, found         bool
	}{
		{"", "", "", false, false},
		{" ", "", "", false, false},
		{"Bearer x", "", "x", false, true},
		{"bearer x y", "", "x", false, true},
		{"Bearer", "", "", false, true},
		{"Bearer  x", "", "", false, true},
		{"Basic x", "", "", false, true},
		{"", "v5.channel.k8s.io, " + a, "a", false, true},
		{"Bearer x", "v5.channel.k8s.io, " + a, "x a", false, true},
		{"Basic x", "v5.channel.k8s.io, " + a, "a", false, true},
		{"", a, "", true, true},
		{"", "v5.channel.k8s.io, " + a + ", " + b, "", true, true},
		{"", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.*", "", true, true},
		{"Bearer x", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.*", "x", true, true},
		{"", "v5.channel.k8s.io", "", false, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", c.authorization)
		if c.protocols != "" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-Websocket-Protocol", c.protocols)
		}
		of := caller{of: i}
		found := of.readTokens(r)
		var tokens []string
		for _, b := range of.tokens {
			tokens = append(tokens, b.token)
		}
		if got := strings.Join(tokens, " "); got != c.tokens || of.malformed != c.malformed || found != c.found {
			t.Errorf("%q, %q: tokens %q, malformed %t, found %t; want %q, %t, %t", c.authorization, c.protocols, got, of.malformed, found, c.tokens, c.malformed, c.found)
		}
		if r.Header.Get("Sec-Websocket-Protocol") != c.protocols || r.Header.Get("Authorization") != c.authorization {
			t.Errorf("%q, %q: the request was changed: %v", c.authorization, c.protocols, r.Header)
		}
	}
}

// A status proves that a kube-apiserver has accepted a token only if it is sent after
// authentication.
func TestStatusesThatProveAuthentication(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		want   bool
	}{
		{"GET", 200, true}, {"POST", 201, true}, {"DELETE", 202, true}, {"GET", 101, true}, {"GET", 304, true}, {"GET", 403, true},
		{"GET", 404, true}, {"PUT", 409, true}, {"POST", 422, true}, {"GET", 406, true}, {"PUT", 405, true},
		{"GET", 400, false}, {"GET", 401, false}, {"OPTIONS", 204, false}, {"OPTIONS", 200, false}, {"GET", 429, false}, {"GET", 500, false},
		{"GET", 502, false}, {"GET", 503, false}, {"GET", 504, false}, {"GET", 302, false}, {"GET", 103, false},
	} {
		i := newIdentities(nil, nil, time.Minute, slog.New(slog.DiscardHandler))
		(&caller{tokens: []bearer{i.bearer("x")}, of: i}).answered(httptest.NewRequest(c.method, "/", nil), c.status)
		if got := i.isAccepted(i.bearer("x")); got != c.want {
			t.Errorf("%d to %s: accepted %t, want %t", c.status, c.method, got, c.want)
		}
		// It is not known which of the two tokens was accepted.
		(&caller{tokens: []bearer{i.bearer("y"), i.bearer("z")}, of: i}).answered(httptest.NewRequest(c.method, "/", nil), c.status)
		if i.isAccepted(i.bearer("y")) || i.isAccepted(i.bearer("z")) {
			t.Errorf("%d to %s with two tokens: accepted one of them", c.status, c.method)
		}
	}
}
