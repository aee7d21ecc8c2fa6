package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

const (
	// credentialsEvery is how often the sidecar asks whether its credentials are accepted.
	// credentialsRetry is how often it asks while they are not accepted.
	credentialsEvery   = 30 * time.Second
	credentialsRetry   = time.Second
	credentialsTimeout = 5 * time.Second
)

// errOwnCredentials means that the local server does not accept the sidecar's own credentials.
var errOwnCredentials = errors.New("the local kube-apiserver does not accept the proxy's front-proxy certificate and identity headers: " +
	"compare its --requestheader flags with --proxy-client-cert-file and with the proxy's own")

// acceptance says whether the local server accepts the identity that the sidecar asserts.
type acceptance int

const (
	acceptanceUnknown acceptance = iota // the server did not answer, or does not serve this API
	accepted
	refused
)

// ownCredentials watches whether the local server accepts the front-proxy certificate and the
// identity headers. It asks the server for the sidecar's own identity (SelfSubjectReview). The
// status of other answers does not show this. Without a certificate, a request is anonymous, and
// the server may let anonymous requests in. A 401 may come from an aggregated API server or from a
// pod. It is safe for concurrent use.
type ownCredentials struct {
	reviews authenticationclient.SelfSubjectReviewInterface // with the sidecar's asserted identity
	log     *slog.Logger
	refused prometheus.Counter // requests that were answered with 503 because the credentials are refused

	state     atomic.Int32 // the last known acceptance
	suspected atomic.Bool
	mu        sync.Mutex // held during a question
	asked     time.Time  // when the last question began
	last      acceptance // the answer to it
}

func newOwnCredentials(reviews authenticationclient.SelfSubjectReviewInterface, log *slog.Logger) *ownCredentials {
	return &ownCredentials{reviews: reviews, log: log, refused: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "skewproof_proxy_local_credentials_refused_total",
		Help: "Requests that were answered with 503 because the local kube-apiserver does not accept the proxy's own credentials.",
	})}
}

// lost reports whether, by the last known answer, the credentials are not accepted.
func (o *ownCredentials) lost() bool { return acceptance(o.state.Load()) == refused }

// Run asks until ctx ends.
func (o *ownCredentials) Run(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, credentialsRetry, true, func(ctx context.Context) (bool, error) {
		now := time.Now()
		o.mu.Lock()
		due := acceptance(o.state.Load()) != accepted || now.Sub(o.asked) >= credentialsEvery
		o.mu.Unlock()
		if o.suspected.Swap(false) || due {
			o.askedSince(ctx, now)
		}
		return false, nil
	})
}

// suspect makes Run ask at once, because the local server may have other flags.
func (o *ownCredentials) suspect() { o.suspected.Store(true) }

// askedSince returns the answer to a question that began after the given time. Callers that wait at
// the same time share one question.
func (o *ownCredentials) askedSince(ctx context.Context, since time.Time) acceptance {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked.After(since) {
		return o.last
	}
	o.asked = time.Now()
	var err error
	o.last, err = o.ask(ctx)
	if o.last == acceptanceUnknown {
		o.log.Debug("could not find out whether the local kube-apiserver accepts the proxy's credentials", "error", err)
		return o.last
	}
	switch before := acceptance(o.state.Swap(int32(o.last))); {
	case o.last == refused && before != refused:
		o.log.Error("requests are answered with 503", "error", err)
	case o.last == accepted && before == refused:
		o.log.Info("the local kube-apiserver accepts the proxy's credentials again")
	}
	return o.last
}

// ask asks once. The error says why the credentials are refused, or why that is unknown.
func (o *ownCredentials) ask(ctx context.Context) (acceptance, error) {
	// This does not end with the caller's context, because other callers wait for the answer too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), credentialsTimeout)
	defer cancel()
	review, err := o.reviews.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err), deniedByAuthorization(err): // system:masters may ask, so this 403 means another identity
		return refused, fmt.Errorf("%w: %w", errOwnCredentials, err)
	case apierrors.IsNotFound(err):
		return accepted, nil // before v1.28 the API does not exist, and only authorized callers get this 404
	case err != nil:
		return acceptanceUnknown, err
	}
	if name := review.Status.UserInfo.Username; name != selfUser.Name {
		return refused, fmt.Errorf("%w: it takes the proxy for %q instead of %q", errOwnCredentials, name, selfUser.Name)
	}
	return accepted, nil
}

// deniedByAuthorization reports whether an error is a 403 in the words of kube-apiserver's
// authorization (k8s.io/apiserver, endpoints/handlers/responsewriters, forbiddenMessage). A 403 of
// an admission webhook has other words, and says nothing about the identity.
func deniedByAuthorization(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot create resource ")
}

// asserted sends requests whose identity headers the local server trusts because of the front-proxy
// certificate. If the server does not accept the certificate, the requests fail with
// errOwnCredentials. Otherwise clients would think that a 401 is about their own credentials, or
// requests would run with another identity.
type asserted struct {
	http.RoundTripper
	own *ownCredentials
}

func (t asserted) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.own.lost() {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must
		}
		t.own.refused.Inc()
		return nil, errOwnCredentials
	}
	answer, err := t.RoundTripper.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	switch now := t.own.askedSince(r.Context(), time.Now()); {
	case now == accepted, now == acceptanceUnknown && answeredByOthers(r):
		return answer, nil // an aggregated API server, a pod, a service or a node refuses the client
	}
	_ = answer.Body.Close()
	t.own.refused.Inc()
	return nil, errOwnCredentials
}
