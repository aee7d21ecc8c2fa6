package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/wire"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"
)

// authentication finds out who asks, and puts that into the request's context. What the caller said of itself is taken out of
// the request, whoever it is.
type authentication struct {
	callers  authenticator.Request
	proxies  *frontProxies
	identity identityNames
	next     http.Handler
	log      *slog.Logger
}

// newAuthentication makes the chain that a kube-apiserver has (see the package's documentation).
func newAuthentication(o *Options, c *credentials, tokens authenticator.Token, next http.Handler, log *slog.Logger) *authentication {
	names := o.identityNames()
	a := &authentication{
		identity: names,
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
		// Only who presents nothing is anonymous: an error ends the chain before it.
		a.callers = union.NewFailOnError(a.callers, anonymous.NewAuthenticator(anonymousAt(o.AnonymousAuthPaths)))
	}
	return a
}

// anonymousAt are the conditions of a kube-apiserver that takes nobody for anonymous but at these paths.
func anonymousAt(paths []string) (conditions []apiserverapi.AnonymousAuthCondition) {
	for _, path := range paths {
		conditions = append(conditions, apiserverapi.AnonymousAuthCondition{Path: path})
	}
	return conditions
}

func (a *authentication) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	record := accessedFrom(r.Context())
	isProxy, _ := a.proxies.verify(r)
	answer, ok, err := a.callers.AuthenticateRequest(r)
	a.identity.drop(r.Header)
	r.Header.Del("Authorization")
	wire.DropTokenProtocols(r.Header)
	record.FromPeer = isProxy
	if namesImpersonation(r.Header) {
		record.Decision = decisionRefused
		answerError(w, r, apierrors.NewBadRequest("the Connection header must not name impersonation headers"))
		return
	}
	switch {
	case errors.Is(err, errUnreviewed):
		record.Decision = decisionRefused
		// Nothing was carried out, so whatever it is may be sent again.
		w.Header().Set("Retry-After", "1")
		answerError(w, r, apierrors.NewServiceUnavailable("the bearer token could not be reviewed: the local kube-apiserver cannot be asked"))
		return
	case err != nil || !ok:
		record.Decision = decisionRefused
		a.log.Debug("could not authenticate a request", "path", r.URL.Path, "error", err)
		closeConnectionAfter(w, r)
		answerError(w, r, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	record.User = answer.User.GetName()
	if trouble := notCarriedByHeaders(answer.User); trouble != "" {
		record.Decision = decisionRefused
		a.log.Warn("refused an identity that headers cannot carry unchanged", "user", answer.User.GetName(), "trouble", trouble)
		answerError(w, r, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(trouble)))
		return
	}
	if isAnonymous(answer.User) {
		closeConnectionAfter(w, r)
	}
	ctx := apirequest.WithUser(r.Context(), answer.User)
	if isProxy {
		ctx = context.WithValue(ctx, fromPeerKey{}, true)
	}
	a.next.ServeHTTP(w, r.WithContext(ctx))
}

// namesImpersonation reports whether the Connection header names an impersonation header, which a reverse proxy would then take out of the
// request (RFC 9110, 7.6.1) and a kube-apiserver would not: the request would be carried out with the rights of whoever impersonates.
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

// impersonates reports whether the request is to be carried out as somebody else.
func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), "impersonate-") {
			return true
		}
	}
	return false
}

type fromPeerKey struct{}

// fromPeer reports whether a front-proxy certificate with an allowed name came with the request: the hop header of nobody else counts.
func fromPeer(r *http.Request) bool {
	from, _ := r.Context().Value(fromPeerKey{}).(bool)
	return from
}

func isAnonymous(u user.Info) bool {
	if u.GetName() == user.Anonymous {
		return true
	}
	for _, g := range u.GetGroups() {
		if g == user.AllUnauthenticated {
			return true
		}
	}
	return false
}

// closeConnectionAfter ends an HTTP/2 connection after this request, because it costs a stranger little to keep one busy (CVE-2023-44487). A
// kube-apiserver does the same (UnauthenticatedHTTP2DOSMitigation).
func closeConnectionAfter(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		w.Header().Set("Connection", "close")
	}
}

// answerError answers with a metav1.Status in the format that the client asked for.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}
