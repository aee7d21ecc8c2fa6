package sidecar

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/util/webhook"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/skewproof/skewproof/proxy/internal/share"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

const (
	// maxTokens is the largest number of tokens in each cache.
	maxTokens     = 8192
	reviewTimeout = 5 * time.Second
	// refusedTTL is how long a refusal is cached. It is long enough to limit the reviews of a
	// client that retries. It is short enough for the token of a service account that has just been
	// created.
	refusedTTL = time.Second
	// acceptedFor is how long after the last accepted request a token's requests share connections
	// with other requests. If the token is then refused, this ends at most one connection.
	acceptedFor = time.Minute
	// maxReviews bounds the reviews that wait for an answer. Each may occupy a connection.
	maxReviews = 200
)

// reviewRetry is for temporary errors: a reset connection, 429, 500.
var reviewRetry = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}

// errTokenRefused means that the local server does not accept a token.
var errTokenRefused = errors.New("the local kube-apiserver does not accept the token")

// identities finds the user of a bearer token. It asks the local server with this token
// (SelfSubjectReview), so the token is in no object that admission webhooks or the audit log see.
// Only a server without that API, before v1.28, gets the token in a TokenReview. It is safe for
// concurrent use.
type identities struct {
	self   authenticationclient.SelfSubjectReviewInterface // sends the token of the context
	tokens authenticationclient.TokenReviewInterface
	ttl    time.Duration // how long a user is remembered
	log    *slog.Logger

	secret [sha256.Size]byte     // of this process: the keys of the caches reveal nothing about tokens
	known  *cache.LRUExpireCache // of user.Info
	// unknown is separate from known, so that invented tokens cannot push known users out of the
	// cache.
	unknown  *cache.LRUExpireCache // of error
	accepted *cache.LRUExpireCache // of struct{}
	asking   singleflight.Group
	reviews  share.Pool
	warned   atomic.Bool // a warning was logged that a caller may not ask for its own identity
}

// outcome is the knowledge of a token: a user or an error.
type outcome struct {
	user user.Info
	err  error
}

func newIdentities(
	self authenticationclient.SelfSubjectReviewInterface, tokens authenticationclient.TokenReviewInterface,
	ttl time.Duration, log *slog.Logger,
) *identities {
	i := &identities{
		self: self, tokens: tokens, ttl: ttl, log: log,
		known: cache.NewLRUExpireCache(maxTokens), unknown: cache.NewLRUExpireCache(maxTokens), accepted: cache.NewLRUExpireCache(maxTokens),
	}
	_, _ = rand.Read(i.secret[:]) // never fails
	return i
}

// bearer is a token with its key in the caches.
type bearer struct{ token, key string }

func (i *identities) bearer(token string) bearer {
	hash := hmac.New(sha256.New, i.secret[:])
	hash.Write([]byte(token))
	return bearer{token, string(hash.Sum(nil))}
}

// isAccepted reports whether the local server has accepted a token lately.
func (i *identities) isAccepted(b bearer) bool {
	_, ok := i.accepted.Get(b.key)
	return ok
}

// accept stores that the local server has accepted a token.
func (i *identities) accept(b bearer) { i.accepted.Add(b.key, struct{}{}, acceptedFor) }

// forget deletes everything that is cached about tokens.
func (i *identities) forget(tokens []bearer) {
	for _, b := range tokens {
		i.accepted.Remove(b.key)
		i.known.Remove(b.key)
		i.unknown.Remove(b.key)
	}
}

// user returns the user of a token if it is cached.
func (i *identities) user(b bearer) (user.Info, bool) {
	if found, ok := i.known.Get(b.key); ok {
		return found.(user.Info), true
	}
	return nil, false
}

// identify returns the user of a token. The error is errTokenRefused or a Status. Callers that ask
// for the same token at the same time share one review. address is the client's address.
func (i *identities) identify(ctx context.Context, b bearer, address string) (user.Info, error) {
	if u, ok := i.user(b); ok {
		return u, nil
	}
	if err, ok := i.unknown.Get(b.key); ok {
		return nil, err.(error)
	}
	asked := i.asking.DoChan(b.key, func() (any, error) {
		if !i.reviews.Take(address, 1, maxReviews) {
			return outcome{err: apierrors.NewTooManyRequests("too many tokens of this client are being reviewed", 1)}, nil
		}
		defer i.reviews.Give(address, 1)
		// This is not the caller's context, because other callers wait for the same answer.
		asking, cancel := context.WithTimeout(withToken(context.Background(), b.token, i.isAccepted(b)), reviewTimeout)
		defer cancel()
		o, remember := i.ask(asking, b.token)
		switch {
		case remember <= 0:
		case o.err != nil:
			i.unknown.Add(b.key, o.err, remember)
			i.known.Remove(b.key)
		default:
			i.known.Add(b.key, o.user, remember)
		}
		switch {
		case errors.Is(o.err, errTokenRefused):
			i.accepted.Remove(b.key)
		case o.err == nil && !wire.Anonymous(o.user):
			i.accept(b)
		}
		return o, nil
	})
	select {
	case answer := <-asked:
		o := answer.Val.(outcome)
		return o.user, o.err
	case <-ctx.Done():
		return nil, unidentified("the request ended first")
	}
}

// ask asks the local server once. It also returns how long to cache the outcome.
func (i *identities) ask(ctx context.Context, token string) (outcome, time.Duration) {
	var review *authenticationv1.SelfSubjectReview
	err := webhook.WithExponentialBackoff(ctx, reviewRetry, func() (err error) {
		review, err = i.self.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	}, webhook.DefaultShouldRetry)
	switch {
	case apierrors.IsUnauthorized(err):
		return outcome{err: errTokenRefused}, min(i.ttl, refusedTTL)
	case apierrors.IsForbidden(err):
		if !i.warned.Swap(true) {
			i.log.Warn("a caller with a bearer token may not ask the local kube-apiserver who it is, so its requests cannot be sent to peers: "+
				"allow it to create selfsubjectreviews.authentication.k8s.io, as the ClusterRole system:basic-user does", "error", err)
		}
		return outcome{err: unidentified("the caller may not create selfsubjectreviews.authentication.k8s.io")}, min(i.ttl, refusedTTL)
	case apierrors.IsNotFound(err):
		return i.review(ctx, token)
	case err != nil:
		return i.unanswered(err)
	case review.Status.UserInfo.Username == "":
		return i.unanswered(errors.New("the answer has no user"))
	}
	return outcome{user: userOf(review.Status.UserInfo)}, i.ttl
}

// review asks a server that has no SelfSubjectReview.
func (i *identities) review(ctx context.Context, token string) (outcome, time.Duration) {
	var review *authenticationv1.TokenReview
	err := webhook.WithExponentialBackoff(ctx, reviewRetry, func() (err error) {
		review, err = i.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
			metav1.CreateOptions{})
		return err
	}, webhook.DefaultShouldRetry)
	switch {
	case err != nil:
		return i.unanswered(err)
	case !review.Status.Authenticated || review.Status.User.Username == "":
		return outcome{err: errTokenRefused}, min(i.ttl, refusedTTL)
	}
	// A TokenReview has the user as the token's authenticator returns it, without
	// system:authenticated.
	found := &authenticator.Response{User: userOf(review.Status.User)}
	found, _, _ = group.NewAuthenticatedGroupAdder(authenticator.RequestFunc(
		func(*http.Request) (*authenticator.Response, bool, error) { return found, true, nil })).AuthenticateRequest(nil)
	return outcome{user: found.User}, i.ttl
}

func (i *identities) unanswered(err error) (outcome, time.Duration) {
	i.log.Error("could not learn from the local kube-apiserver whose bearer token a request has; answered 503", "error", err)
	return outcome{err: unidentified("the local kube-apiserver cannot be asked")}, 0
}

// unidentified is the answer to a request whose caller is not known. A 401 would say that the
// credentials are bad, which is unknown. It would also make clients fetch new ones.
func unidentified(why string) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable("it is not known whose bearer token this is: " + why)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1} // safe: the request was not carried out
	return err
}

func userOf(u authenticationv1.UserInfo) user.Info {
	found := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: map[string][]string{}}
	for key, values := range u.Extra {
		found.Extra[key] = values
	}
	return found
}

type tokenKey struct{}

// withToken returns a context for asWhoever. trusted says that the local server has accepted the
// token lately.
func withToken(ctx context.Context, token string, trusted bool) context.Context {
	return withCallerOf(context.WithValue(ctx, tokenKey{}, token), &caller{trusted: trusted})
}

// asWhoever sends requests with the token in their context.
type asWhoever struct{ idleCloser }

func (a asWhoever) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	token, _ := r.Context().Value(tokenKey{}).(string)
	r.Header.Set("Authorization", "Bearer "+token)
	return a.idleCloser.RoundTrip(r)
}
