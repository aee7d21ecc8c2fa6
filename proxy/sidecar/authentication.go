package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes/scheme"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// authentication authenticates the caller and adds the user to the request's context. It removes
// credentials and identity headers from every request.
type authentication struct {
	callers  authenticator.Request
	proxies  *frontProxies
	identity *headerNames
	next     http.Handler
	log      *slog.Logger
}

// newAuthentication makes the chain of a kube-apiserver (see the package's documentation).
func newAuthentication(o *Options, c *credentials, identity *headerNames, tokens authenticator.Token, next http.Handler, log *slog.Logger) *authentication {
	names := identity.own
	a := &authentication{
		identity: identity,
		next:     next,
		log:      log,
		proxies: &frontProxies{ca: c.requestHeaderCA, allowed: o.RequestHeaderNames, headers: headerrequest.NewDynamic(
			headerrequest.StaticStringSlice(names.user), headerrequest.StaticStringSlice(names.uid),
			headerrequest.StaticStringSlice(names.group), headerrequest.StaticStringSlice(names.extra))},
	}
	chain := []authenticator.Request{a.proxies}
	if c.clientCA != nil {
		chain = append(chain, x509request.NewDynamic(c.clientCA.verifyOptions, x509request.CommonNameUserConversion))
	}
	chain = append(chain, bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
	a.callers = group.NewAuthenticatedGroupAdder(union.New(chain...))
	if o.AnonymousAuth {
		var only []apiserverapi.AnonymousAuthCondition // none: at all paths
		for _, path := range o.AnonymousAuthPaths {
			only = append(only, apiserverapi.AnonymousAuthCondition{Path: path})
		}
		// Only a caller without credentials is anonymous: an error ends the chain before that.
		a.callers = union.NewFailOnError(a.callers, anonymous.NewAuthenticator(only))
	}
	return a
}

func (a *authentication) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	record := accessedFrom(r.Context())
	isProxy, _ := a.proxies.verify(r)
	answer, ok, err := a.callers.AuthenticateRequest(r)
	a.identity.drop(r.Header)
	r.Header.Del("Authorization")
	wire.DropTokenProtocols(r.Header)
	record.FromPeer = isProxy
	refuse := func(err error) {
		record.Decision = decisionRefused
		answerError(w, r, err)
	}
	switch {
	case namesImpersonation(r.Header):
		refuse(apierrors.NewBadRequest("the Connection header must not name impersonation headers"))
		return
	case errors.Is(err, errUnreviewed):
		w.Header().Set("Retry-After", "1") // safe: the request was not carried out
		refuse(apierrors.NewServiceUnavailable("the bearer token could not be reviewed: the local kube-apiserver cannot be asked"))
		return
	case err != nil || !ok:
		a.log.Debug("could not authenticate a request", "path", r.URL.Path, "error", err)
		closeConnectionAfter(w, r, isProxy)
		refuse(apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	record.User = answer.User.GetName()
	if trouble := notCarriedByHeaders(answer.User); trouble != "" {
		a.log.Warn("refused an identity that headers cannot carry unchanged", "user", answer.User.GetName(), "trouble", trouble)
		refuse(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(trouble)))
		return
	}
	if isAnonymous(answer.User) {
		closeConnectionAfter(w, r, isProxy)
	}
	ctx := apirequest.WithUser(r.Context(), answer.User)
	if isProxy {
		ctx = context.WithValue(ctx, fromPeerKey{}, true)
	}
	a.next.ServeHTTP(w, r.WithContext(ctx))
}

// namesImpersonation reports whether the Connection header names an impersonation header. A reverse
// proxy would remove that header (RFC 9110, 7.6.1), and the local server would then carry out the
// request with the rights of the caller instead of the impersonated user.
func namesImpersonation(h http.Header) bool {
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(option)), "impersonate-") {
				return true
			}
		}
	}
	return false
}

// impersonates reports whether a request has an impersonation header.
func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), "impersonate-") {
			return true
		}
	}
	return false
}

type fromPeerKey struct{}

// fromPeer reports whether the caller has a front-proxy certificate with an allowed name. Only then
// does its hop header count.
func fromPeer(r *http.Request) bool {
	from, _ := r.Context().Value(fromPeerKey{}).(bool)
	return from
}

func isAnonymous(u user.Info) bool {
	return wire.Anonymous(u)
}

// closeConnectionAfter ends an HTTP/2 connection after this request, because an unauthenticated
// client can keep one busy at little cost (CVE-2023-44487). A kube-apiserver does the same
// (UnauthenticatedHTTP2DOSMitigation). A peer has proved who it is, and all its callers share its
// connection: closing that would fail requests of others.
func closeConnectionAfter(w http.ResponseWriter, r *http.Request, fromPeer bool) {
	if r.ProtoMajor == 2 && !fromPeer {
		w.Header().Set("Connection", "close")
	}
}

// answerError answers with a metav1.Status in the format that the client asked for.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// errUnreviewed means that the local server could not be asked. It says nothing about the token.
var errUnreviewed = errors.New("the token could not be reviewed")

const (
	reviewTimeout = 5 * time.Second
	// refusedTTL is how long a refusal is cached: long enough to limit the reviews of a client that
	// retries, short enough for the token of a service account that has just been created.
	refusedTTL = time.Second
)

// reviewRetry is for errors that may pass: a reset connection, 429, 500.
var reviewRetry = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}

// tokenReviews authenticates bearer tokens by TokenReview. It is safe for concurrent use.
//
// The API machinery's own (plugin/pkg/authenticator/token/webhook) does not distinguish a token
// that was refused, which is answered with 401 here, from one that could not be reviewed: 503.
type tokenReviews struct {
	reviews authenticationclient.TokenReviewInterface
	log     *slog.Logger
}

// cached adds a cache that also joins concurrent reviews of one token. A ttl of zero caches
// nothing.
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
		t.log.Error("could not review a bearer token at the local kube-apiserver; answered 503", "error", err)
		return nil, false, fmt.Errorf("%w: %w", errUnreviewed, err)
	}
	if !review.Status.Authenticated || review.Status.User.Username == "" {
		t.log.Debug("the local kube-apiserver refused a bearer token", "reason", review.Status.Error)
		return nil, false, nil
	}
	u := review.Status.User
	found := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: map[string][]string{}}
	for key, values := range u.Extra {
		found.Extra[key] = values
	}
	return &authenticator.Response{User: found}, true, nil
}
