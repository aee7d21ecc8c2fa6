package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// oracle answers reviews of tokens as a test says.
type oracle struct {
	who   authenticationv1.UserInfo
	err   error // of a SelfSubjectReview
	older authenticationv1.TokenReviewStatus
	fails error // of a TokenReview
	asked []string
}

// selfReviews and tokenReviews are the two APIs of an oracle.
type (
	selfReviewsOf struct {
		authenticationclient.SelfSubjectReviewInterface
		*oracle
	}
	tokenReviewsOf struct {
		authenticationclient.TokenReviewInterface
		*oracle
	}
)

func (o selfReviewsOf) Create(ctx context.Context, r *authenticationv1.SelfSubjectReview, _ metav1.CreateOptions) (*authenticationv1.SelfSubjectReview, error) {
	o.asked = append(o.asked, fmt.Sprintf("self trusted=%t", callerFrom(ctx).trusted))
	r.Status.UserInfo = o.who
	return r, o.err
}

func (o tokenReviewsOf) Create(_ context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	o.asked = append(o.asked, "review "+r.Spec.Token)
	r.Status = o.older
	return r, o.fails
}

func (o *oracle) identities(ttl time.Duration) *identities {
	return newIdentities(selfReviewsOf{oracle: o}, tokenReviewsOf{oracle: o}, ttl, slog.New(slog.DiscardHandler))
}

var notFound = apierrors.NewNotFound(schema.GroupResource{}, "")

// What is known of a token has three parts: its user, that it was refused, and that the local
// server accepted it lately. The table says which event changes which part.
func TestWhatIsKnownOfATokenAfterEachEvent(t *testing.T) {
	const token = "t"
	bot, nobody := authenticationv1.UserInfo{Username: "bot"}, authenticationv1.UserInfo{Username: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	answered := func(status int, others ...string) func(*identities, *oracle) {
		return func(i *identities, _ *oracle) {
			c := &caller{tokens: []bearer{i.bearer(token)}, of: i}
			for _, other := range others {
				c.tokens = append(c.tokens, i.bearer(other))
			}
			c.answered(httptest.NewRequest(http.MethodGet, common, nil), status)
		}
	}
	reviewed := func(set func(*oracle)) func(*identities, *oracle) {
		return func(i *identities, o *oracle) {
			i.known.Remove(i.bearer(token).key) // its time is over
			i.unknown.Remove(i.bearer(token).key)
			set(o)
			_, _ = i.identify(context.Background(), i.bearer(token), "192.0.2.1")
		}
	}
	// Each part before the event is there or not; after it is there (+), not there (-) or as before
	// (=). A review begins when the user is not known.
	for name, c := range map[string]struct {
		event                    func(*identities, *oracle)
		known, refused, accepted string
	}{
		"a 401":                        {answered(401), "-", "-", "-"},
		"a 200":                        {answered(200), "=", "=", "+"},
		"a 503":                        {answered(503), "=", "=", "="},
		"a 401 for two tokens":         {answered(401, "other"), "-", "-", "-"},
		"a 200 for two tokens":         {answered(200, "other"), "=", "=", "="},
		"a user":                       {reviewed(func(o *oracle) { o.who = bot }), "+", "-", "+"},
		"taken for anonymous":          {reviewed(func(o *oracle) { o.who = nobody }), "+", "-", "="},
		"refused":                      {reviewed(func(o *oracle) { o.err = apierrors.NewUnauthorized("") }), "-", "+", "-"},
		"it may not ask":               {reviewed(func(o *oracle) { o.err = apierrors.NewForbidden(schema.GroupResource{}, "", nil) }), "-", "+", "="},
		"no answer":                    {reviewed(func(o *oracle) { o.err = errors.New("out of reach") }), "-", "-", "="},
		"no user":                      {reviewed(func(*oracle) {}), "-", "-", "="},
		"an older server, a user":      {reviewed(func(o *oracle) { o.err, o.older.Authenticated, o.older.User = notFound, true, bot }), "+", "-", "+"},
		"an older server, refused":     {reviewed(func(o *oracle) { o.err, o.older.User = notFound, bot }), "-", "+", "-"},
		"an older server, nameless":    {reviewed(func(o *oracle) { o.err, o.older.Authenticated = notFound, true }), "-", "+", "-"},
		"an older server, no answer":   {reviewed(func(o *oracle) { o.err, o.fails = notFound, errors.New("out of reach") }), "-", "-", "="},
		"an older server, no such API": {reviewed(func(o *oracle) { o.err, o.fails = notFound, notFound }), "-", "-", "="},
	} {
		for before := range 8 {
			o := &oracle{}
			i := o.identities(time.Minute)
			b, other := i.bearer(token), i.bearer("another")
			for _, each := range []bearer{b, other} {
				if before&1 != 0 {
					i.known.Add(each.key, user.Info(&user.DefaultInfo{Name: "bot"}), time.Minute)
				}
				if before&2 != 0 {
					i.unknown.Add(each.key, errTokenRefused, time.Minute)
				}
				if before&4 != 0 {
					i.accept(each)
				}
			}
			c.event(i, o)
			for part, want := range []string{c.known, c.refused, c.accepted} {
				had := before&(1<<part) != 0
				has := func(b bearer) bool {
					switch part {
					case 0:
						_, ok := i.user(b)
						return ok
					case 1:
						_, ok := i.unknown.Get(b.key)
						return ok
					}
					return i.isAccepted(b)
				}
				if got := has(b); got != (want == "+" || want == "=" && had) {
					t.Errorf("%s, before it %03b (accepted, refused, known): part %d is there: %t, want %q", name, before, part, got, want)
				}
				if has(other) != had {
					t.Errorf("%s, before it %03b: part %d of another token has changed", name, before, part)
				}
			}
			if i.reviews.Used() != 0 {
				t.Errorf("%s: %d reviews still count", name, i.reviews.Used())
			}
		}
	}
}

// How long an answer about a token counts depends on the answer and on
// --authentication-token-webhook-cache-ttl. It counts until the last moment, and not longer.
func TestHowLongEachAnswerAboutATokenCounts(t *testing.T) {
	refuse := func(o *oracle) { o.err = apierrors.NewUnauthorized("") }
	for name, c := range map[string]struct {
		set  func(*oracle)
		most time.Duration // however long the flag says
		asks []string      // each time
	}{
		"a user":  {func(o *oracle) { o.who.Username = "bot" }, time.Hour, []string{"self"}},
		"refused": {refuse, refusedTTL, []string{"self"}},
		"may not": {func(o *oracle) { o.err = apierrors.NewForbidden(schema.GroupResource{}, "", nil) }, refusedTTL, []string{"self"}},
		"no user": {func(*oracle) {}, 0, []string{"self"}},
		"older, a user": {func(o *oracle) { o.err, o.older.Authenticated, o.older.User.Username = notFound, true, "bot" }, time.Hour,
			[]string{"self", "review"}},
		"older, refused":   {func(o *oracle) { o.err = notFound }, refusedTTL, []string{"self", "review"}},
		"older, no answer": {func(o *oracle) { o.err, o.fails = notFound, errors.New("out of reach") }, 0, []string{"self", "review"}},
	} {
		for _, ttl := range []time.Duration{0, refusedTTL / 2, refusedTTL, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				o := &oracle{}
				c.set(o)
				i := o.identities(ttl)
				counts := min(ttl, c.most)
				asked := func(after time.Duration, again bool) {
					t.Helper()
					o.asked = nil
					_, _ = i.identify(t.Context(), i.bearer("t"), "192.0.2.1")
					var kinds []string
					for _, each := range o.asked {
						kinds = append(kinds, strings.Fields(each)[0])
					}
					want := c.asks
					if !again {
						want = nil
					}
					if !slices.Equal(kinds, want) {
						t.Errorf("%s, --authentication-token-webhook-cache-ttl %s, %s later: asked %v, want %v", name, ttl, after, kinds, want)
					}
				}
				asked(0, true)
				asked(0, counts == 0)
				if counts > 0 {
					time.Sleep(counts - time.Nanosecond)
					asked(counts-time.Nanosecond, false)
					time.Sleep(2 * time.Nanosecond)
					asked(counts+time.Nanosecond, true)
				}
			})
		}
	}
}

// A token goes into a TokenReview only if the server has no SelfSubjectReview. Such a review has
// the user without system:authenticated, which an authenticated user is in nevertheless.
func TestUsersOfOlderServers(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		want   string
	}{
		"none": {nil, "[system:authenticated]"}, "some": {[]string{"a", "b"}, "[a b system:authenticated]"},
		"it is there": {[]string{user.AllAuthenticated, "a"}, "[system:authenticated a]"},
	} {
		o := &oracle{err: notFound, older: authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
			Username: "bot", UID: "7", Groups: c.groups, Extra: map[string]authenticationv1.ExtraValue{"k": {"x", "y"}, "none": nil},
		}}}
		i := o.identities(time.Minute)
		u, err := i.identify(t.Context(), i.bearer("t"), "")
		if err != nil || u.GetName() != "bot" || u.GetUID() != "7" || fmt.Sprint(u.GetGroups()) != c.want || fmt.Sprint(u.GetExtra()) != "map[k:[x y] none:[]]" {
			t.Errorf("%s: %+v, error %v", name, u, err)
		}
		if !slices.Equal(o.asked, []string{"self trusted=false", "review t"}) {
			t.Errorf("%s: asked %q", name, o.asked)
		}
		i.known.Remove(i.bearer("t").key)
		o.asked, o.err = nil, nil
		_, _ = i.identify(t.Context(), i.bearer("t"), "")
		if !slices.Equal(o.asked, []string{"self trusted=true"}) { // the connection of an accepted token may be shared
			t.Errorf("%s: asked again %q", name, o.asked)
		}
	}
}

// It is logged once that callers may not ask who they are, however many may not.
func TestCallersThatMayNotAskAreLoggedOnce(t *testing.T) {
	var logged strings.Builder
	o := &oracle{err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}
	i := o.identities(time.Minute)
	i.log = slog.New(slog.NewTextHandler(&logged, nil))
	for _, token := range []string{"a", "b", "c"} {
		if _, err := i.identify(t.Context(), i.bearer(token), ""); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s: %v, want 503", token, err)
		}
	}
	if n := strings.Count(logged.String(), "system:basic-user"); n != 1 {
		t.Errorf("logged %d times: %s", n, &logged)
	}
}

// A caller that leaves does not end the review that others wait for.
func TestCallersThatLeaveEndNoReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reviewer{users: map[string]string{"good": "bot"}, wait: make(chan struct{})}
		i := newIdentities(s, nil, time.Minute, slog.New(slog.DiscardHandler))
		ctx, leave := context.WithCancel(t.Context())
		outcomes := make(chan error, 2)
		go func() { _, err := i.identify(ctx, i.bearer("good"), ""); outcomes <- err }()
		synctest.Wait()
		go func() { _, err := i.identify(t.Context(), i.bearer("good"), ""); outcomes <- err }()
		synctest.Wait()
		leave()
		if err := <-outcomes; !apierrors.IsServiceUnavailable(err) {
			t.Errorf("the caller that left: %v, want 503", err)
		}
		close(s.wait)
		if err := <-outcomes; err != nil || s.asked != 1 {
			t.Errorf("the caller that waits: %v, after %d questions", err, s.asked)
		}
	})
}
