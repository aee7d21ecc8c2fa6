package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/util/webhook"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// errUnreviewed is what a token is answered with that nobody could be asked about. It says nothing of the token.
var errUnreviewed = errors.New("the token could not be reviewed")

const (
	reviewTimeout = 5 * time.Second
	// refusedTTL is for how long a refused token is believed to be one: long enough to bear a storm of them, short enough for one that is
	// about to become known (a new service account's).
	refusedTTL = time.Second
)

// reviewRetry is for answers that another try may better: a reset connection, 429, 500.
var reviewRetry = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}

// tokenReviews authenticates bearer tokens by TokenReview. It is safe for concurrent use.
//
// The API machinery's own (plugin/pkg/authenticator/token/webhook) does not tell a token that was refused from one that could not
// be reviewed, which are answered differently here.
type tokenReviews struct {
	reviews authenticationclient.TokenReviewInterface
	log     *slog.Logger
}

// cached returns it behind a cache that also joins reviews of the same token. A ttl of zero caches nothing.
func (t *tokenReviews) cached(ttl time.Duration) authenticator.Token {
	return cache.New(t, false, ttl, min(ttl, refusedTTL))
}

// AuthenticateToken implements [authenticator.Token]. Its error is errUnreviewed or nil.
func (t *tokenReviews) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var review *authenticationv1.TokenReview
	err := webhook.WithExponentialBackoff(ctx, reviewRetry, func() error {
		var err error
		review, err = t.reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		return err
	}, webhook.DefaultShouldRetry)
	if err != nil {
		t.log.Error("a bearer token could not be reviewed by the local kube-apiserver: its sender is answered with 503", "error", err)
		return nil, false, fmt.Errorf("%w: %w", errUnreviewed, err)
	}
	if !review.Status.Authenticated || review.Status.User.Username == "" {
		t.log.Debug("a bearer token was refused", "why", review.Status.Error)
		return nil, false, nil
	}
	found := &user.DefaultInfo{Name: review.Status.User.Username, UID: review.Status.User.UID, Groups: review.Status.User.Groups}
	if len(review.Status.User.Extra) > 0 {
		found.Extra = make(map[string][]string, len(review.Status.User.Extra))
		for key, values := range review.Status.User.Extra {
			found.Extra[key] = values
		}
	}
	return &authenticator.Response{User: found}, true, nil
}
