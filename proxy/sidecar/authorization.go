package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/client-go/kubernetes/scheme"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/skewproof/skewproof/proxy/internal/share"
)

const (
	// authorizedFor is how long the answer to a SubjectAccessReview is cached. The delegated
	// authorizer of an aggregated API server uses the same time (k8s.io/apiserver,
	// DelegatingAuthorizationOptions).
	authorizedFor = 10 * time.Second
	// maxIdentity bounds the identities that are reviewed, in bytes. An impersonator chooses names
	// freely, so this also bounds the memory of the cache. Tokens and certificates have shorter
	// identities.
	maxIdentity = 16 << 10
	// maxAccessReviews bounds the reviews that wait for an answer. The sidecar asks as
	// system:masters, whom the local server's flow control does not limit.
	maxAccessReviews = 100
)

// authorization asks the local server whether it would let a caller do what a request asks for
// (SubjectAccessReview). The sidecar needs this only before it answers a request itself: a request
// that it passes on is authorized by the server that serves it. It is safe for concurrent use.
type authorization struct {
	server        authorizer.UnconditionalAuthorizer
	impersonation http.Handler // finds the user that a request impersonates
	reviews       share.Pool   // of maxAccessReviews, by caller
}

func newAuthorization(client authorizationclient.AuthorizationV1Interface) (*authorization, error) {
	// An error is not a decision: authorize returns it.
	reviews, err := webhook.NewFromInterface(client, authorizedFor, authorizedFor, reviewRetry, authorizer.DecisionNoOpinion,
		metrics.NoopAuthorizerMetrics{}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a client of the local kube-apiserver's authorization: %w", err)
	}
	a := &authorization{server: reviews}
	act := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		actingFrom(r.Context()).as, _ = apirequest.UserFrom(r.Context())
	})
	// This is the filter of the newest kube-apiserver. It also grants everything that
	// kube-apiservers before v1.36 grant.
	a.impersonation = impersonation.WithConstrainedImpersonation(act, authorizer.AuthorizerFunc(a.review), scheme.Codecs)
	return a, nil
}

// acting is the user with whose rights a request acts.
type acting struct {
	as  user.Info
	err error // of a review
}

type actingKey struct{}

func actingFrom(ctx context.Context) *acting { return ctx.Value(actingKey{}).(*acting) }

// authorize is [proxy.Config.Authorize]. The refusal has the words of a kube-apiserver.
func (a *authorization) authorize(r *http.Request) (refusal *metav1.Status, err error) {
	u, err := identify(r)
	var status *apierrors.StatusError
	switch {
	case apierrors.IsUnauthorized(err) && errors.As(err, &status):
		return &status.ErrStatus, nil
	case err != nil:
		return nil, fmt.Errorf("find out who the caller is: %w", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	current := &acting{as: u}
	ctx = context.WithValue(apirequest.WithUser(ctx, u), actingKey{}, current)
	if impersonates(r.Header) {
		current.as = nil
		if refusal, err := a.impersonate(r.Clone(ctx)); refusal != nil || err != nil {
			return refusal, err
		}
		ctx = apirequest.WithUser(ctx, current.as)
	}
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out what the request asks for: %w", err)
	}
	switch decision, reason, err := a.review(ctx, attributes); {
	case decision == authorizer.DecisionAllow:
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return &responsewriters.ForbiddenStatusError(attributes, reason).ErrStatus, nil
	}
}

// impersonate sets the user with whose rights r acts, or returns the filter's refusal.
func (a *authorization) impersonate(r *http.Request) (*metav1.Status, error) {
	r.Header.Set("Accept", "application/json") // for this function
	answer := &bufferedAnswer{header: http.Header{}}
	a.impersonation.ServeHTTP(answer, r)
	switch current := actingFrom(r.Context()); {
	case current.err != nil:
		return nil, current.err
	case current.as != nil:
		return nil, nil
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer.body.Bytes(), nil, nil)
	if status, ok := decoded.(*metav1.Status); ok && err == nil && answer.status < http.StatusInternalServerError {
		return status, nil
	}
	return nil, fmt.Errorf("find out as whom the request acts: the filter answered %d", answer.status)
}

// review asks the local server, and stores an error for impersonate.
func (a *authorization) review(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	var err error
	decision, reason := authorizer.DecisionNoOpinion, ""
	if size := identitySize(attributes.GetUser()) + len(attributes.GetName()); size > maxIdentity {
		err = fmt.Errorf("the identity has %d bytes, and at most %d are reviewed", size, maxIdentity)
	} else if seat := callerFrom(ctx).seat(); !a.reviews.Take(seat, 1, maxAccessReviews) {
		err = errors.New("too many reviews of this caller's requests wait for an answer")
	} else {
		decision, reason, err = a.server.Authorize(ctx, attributes)
		a.reviews.Give(seat, 1)
	}
	if err != nil {
		err = fmt.Errorf("ask the local kube-apiserver whether the caller may do this (create subjectaccessreviews): %w", err)
		actingFrom(ctx).err = err
	}
	return decision, reason, err
}

func identitySize(u user.Info) int {
	size := len(u.GetName()) + len(u.GetUID()) + len(strings.Join(u.GetGroups(), ""))
	for key, values := range u.GetExtra() {
		size += len(key) + len(strings.Join(values, ""))
	}
	return size
}

// before passes a request on only if the local server allows the caller this verb on this path.
func (a *authorization) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal, err := a.authorize(r)
		switch {
		case refusal != nil:
			w.Header().Set("X-Content-Type-Options", "nosniff")
			answerError(w, r, &apierrors.StatusError{ErrStatus: *refusal})
		case err != nil:
			w.Header().Set("Retry-After", "1")
			answerError(w, r, apierrors.NewServiceUnavailable("the local kube-apiserver does not say whether the caller may see this"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}
