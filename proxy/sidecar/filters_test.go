package sidecar

import (
	"context"
	"crypto/x509"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	endpointfilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	serverfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/tracing"
)

// filtered puts the filters of a kube-apiserver before a handler, in the same order
// (k8s.io/apiserver, pkg/server, DefaultBuildHandlerChain). It leaves out filters that only
// measure. The filters are the real ones, but the tokens and the authorizer are the stand-in's.
func (a *apiserver) filtered(handler http.Handler, goawayChance float64) http.Handler {
	long := serverfilters.BasicLongRunningRequestCheck(sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
	handler = endpointfilters.WithAuthorization(handler, authorizer.AuthorizerFunc(a.authorize), scheme.Codecs)
	handler = serverfilters.WithMaxInFlightLimit(handler, 400, 200, long)
	handler = impersonation.WithConstrainedImpersonation(handler, authorizer.AuthorizerFunc(a.authorize), scheme.Codecs)
	handler = withCaller(handler)
	handler = endpointfilters.WithTracing(handler, tracing.NewNoopTracerProvider())
	handler = endpointfilters.WithAuthentication(handler, authenticator.RequestFunc(a.authenticate), endpointfilters.Unauthorized(scheme.Codecs), nil, nil)
	handler = endpointfilters.WithWarningRecorder(handler)
	handler = serverfilters.WithTimeoutForNonLongRunningRequests(handler, long)
	handler = endpointfilters.WithRequestDeadline(handler, nil, nil, long, scheme.Codecs, time.Minute)
	if goawayChance > 0 {
		handler = serverfilters.WithProbabilisticGoaway(handler, goawayChance)
	}
	handler = endpointfilters.WithCacheControl(handler)
	handler = serverfilters.WithHTTPLogging(handler)
	handler = endpointfilters.WithRequestInfo(handler, infos)
	handler = endpointfilters.WithRequestReceivedTimestamp(handler)
	handler = serverfilters.WithPanicRecovery(handler, infos)
	handler = endpointfilters.WithAuditInit(handler)
	return withReceived(handler)
}

// authenticate is the authentication chain of a kube-apiserver (pkg/kubeapiserver/authenticator).
func (a *apiserver) authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	a.mu.Lock()
	front, clients, names, admits, noAnonymous := a.front, a.clients, a.headers, a.admits, a.noAnonymous
	a.mu.Unlock()
	proxies := func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: front, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}
	tokens := authenticator.TokenFunc(a.token)
	certificates := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
	if clients != nil {
		options := x509.VerifyOptions{Roots: clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		certificates = x509request.New(options, x509request.CommonNameUserConversion).AuthenticateRequest
	}
	known := group.NewAuthenticatedGroupAdder(union.New(
		headerrequest.NewDynamicVerifyOptionsSecure(proxies, headerrequest.StaticStringSlice{"front-proxy-client"},
			headerrequest.StaticStringSlice(names.user), headerrequest.StaticStringSlice(names.uid),
			headerrequest.StaticStringSlice(names.group), headerrequest.StaticStringSlice(names.extra)),
		certificates, bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens)))
	if noAnonymous {
		return known.AuthenticateRequest(r)
	}
	return union.NewFailOnError(known, anonymous.NewAuthenticator(admits)).AuthenticateRequest(r)
}

func (a *apiserver) token(_ context.Context, token string) (*authenticator.Response, bool, error) {
	if token == kubeconfigToken {
		return &authenticator.Response{User: &user.DefaultInfo{Name: kubeconfigUser, Groups: []string{user.SystemPrivilegedGroup}}}, true, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ok := a.tokens[token]
	return &authenticator.Response{User: infoOf(u)}, ok, nil
}

func infoOf(u authenticationv1.UserInfo) *user.DefaultInfo {
	info := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: map[string][]string{}}
	for key, values := range u.Extra {
		info.Extra[key] = values
	}
	return info
}

func userInfoOf(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: map[string]authenticationv1.ExtraValue{}}
	for key, values := range u.GetExtra() {
		info.Extra[key] = values
	}
	return info
}

// discoveryPaths are the paths of the ClusterRole system:discovery
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
var discoveryPaths = regexp.MustCompile(`^/(api|apis|openapi)(/.*)?$`)

// authorize allows everything that RBAC allows by default, and all resources.
func (a *apiserver) authorize(_ context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
	a.mu.Lock()
	forbids, grants := a.forbids, a.grants
	a.mu.Unlock()
	groups := at.GetUser().GetGroups()
	allowed := true
	switch {
	case slices.Contains(groups, user.SystemPrivilegedGroup), grants != nil && grants(at):
	case forbids != nil && forbids(at):
		allowed = false
	case at.GetAPIGroup() == "authorization.k8s.io" || at.GetAPIGroup() == "authentication.k8s.io": // system:basic-user
		allowed = slices.Contains(groups, user.AllAuthenticated) && strings.HasPrefix(at.GetResource(), "self")
	case !at.IsResourceRequest() && !slices.Contains([]string{"/readyz", "/livez", "/healthz", "/version"}, at.GetPath()): // system:discovery
		allowed = slices.Contains(groups, user.AllAuthenticated) && discoveryPaths.MatchString(at.GetPath()) && at.GetVerb() == "get"
	}
	if allowed {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, a.name + " says so", nil
}

// received is a request in its original form, with its caller.
type received struct {
	user   user.Info
	header http.Header
}

type receivedKey struct{}

func withReceived(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), receivedKey{}, &received{header: r.Header.Clone()})))
	})
}

func withCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		callerOf(r).user, _ = apirequest.UserFrom(r.Context())
		next.ServeHTTP(w, r)
	})
}

func callerOf(r *http.Request) *received { return r.Context().Value(receivedKey{}).(*received) }
