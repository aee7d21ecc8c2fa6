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
	"k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// authentication identifies the caller, as far as the sidecar can. It adds the [caller] to the
// request's context, and also the user if the sidecar knows it. It removes all identity headers. It
// removes credentials unless the local server has to judge them.
type authentication struct {
	certificates authenticator.Request
	anonymous    authenticator.Request // nil: no caller is anonymous
	proxies      *frontProxies
	identity     *headerNames
	identities   *identities
	logsUsers    bool // the access log needs the user of every request
	next         http.Handler
	log          *slog.Logger
}

// newAuthentication makes the chain of a kube-apiserver (see the package's documentation), without
// its bearer tokens.
func newAuthentication(o *Options, c *credentials, identity *headerNames, tokens *identities, next http.Handler,
	log *slog.Logger) *authentication {
	names := identity.own
	always := func(names []string) func() []string { return func() []string { return names } }
	known := func(of func(*identityNames) []string) func() []string {
		return func() []string { return identity.everybodyKnows(of) }
	}
	a := &authentication{
		identity: identity, identities: tokens, logsUsers: o.AccessLog != "", next: next, log: log,
		proxies: &frontProxies{
			ca: c.requestHeaderCA, allowed: o.RequestHeaderNames,
			headers: readHeaders(always(names.user), always(names.uid), always(names.group), always(names.extra)),
			hopHeaders: readHeaders(
				known(func(n *identityNames) []string { return n.user }), known(func(n *identityNames) []string { return n.uid }),
				known(func(n *identityNames) []string { return n.group }), known(func(n *identityNames) []string { return n.extra })),
		},
	}
	chain := []authenticator.Request{a.proxies}
	if c.clientCA != nil {
		chain = append(chain, x509request.NewDynamic(c.clientCA.verifyOptions, x509request.CommonNameUserConversion))
	}
	a.certificates = group.NewAuthenticatedGroupAdder(union.New(chain...))
	if o.AnonymousAuth {
		var only []apiserverapi.AnonymousAuthCondition // none: at all paths
		for _, path := range o.AnonymousAuthPaths {
			only = append(only, apiserverapi.AnonymousAuthCondition{Path: path})
		}
		a.anonymous = anonymous.NewAuthenticator(only)
	}
	return a
}

func (a *authentication) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r = a.authenticate(w, r); r != nil {
		a.next.ServeHTTP(w, r)
	}
}

// authenticate returns the request with its caller in its context and without identity headers. If
// it refuses the request, it answers and returns nil.
func (a *authentication) authenticate(w http.ResponseWriter, r *http.Request) *http.Request {
	record := accessedFrom(r.Context())
	isProxy, _ := a.proxies.verify(r)
	record.FromPeer = isProxy
	record.Client = loggedAddress(r, isProxy)
	c, err := a.caller(r)
	a.identity.drop(r.Header)
	refuse := func(err error) *http.Request {
		record.Decision = decisionRefused
		answerError(w, r, err)
		return nil
	}
	switch {
	case namesImpersonation(r.Header):
		return refuse(apierrors.NewBadRequest("the Connection header must not name impersonation headers"))
	case err != nil:
		a.log.Debug("could not authenticate a request", "path", r.URL.Path, "error", err)
		closeConnectionAfter(w, r, isProxy)
		return refuse(apierrors.NewUnauthorized("Unauthorized"))
	}
	ctx := withCallerOf(r.Context(), c)
	if isProxy {
		ctx = context.WithValue(ctx, fromPeerKey{}, true)
	}
	record.caller = c
	if c.nobody() {
		closeConnectionAfter(w, r, isProxy)
	}
	if c.own() {
		return r.WithContext(ctx)
	}
	u := c.asserted
	if trouble := notCarriedByHeaders(u); trouble != "" {
		a.log.Warn("refused an identity that headers cannot carry unchanged", "user", u.GetName(), "trouble", trouble)
		return refuse(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(trouble)))
	}
	r.Header.Del("Authorization")
	wire.DropTokenProtocols(r.Header)
	return r.WithContext(apirequest.WithUser(ctx, u))
}

// caller returns the caller of a request. It uses the order of a kube-apiserver: a certificate
// comes before a token, and a good token is accepted in spite of a bad certificate. It returns an
// error if the local server could only answer 401.
func (a *authentication) caller(r *http.Request) (*caller, error) {
	by, ok, err := a.certificates.AuthenticateRequest(r)
	if ok {
		return &caller{asserted: by.User}, nil
	}
	var nobody user.Info
	if a.anonymous != nil {
		if by, ok, _ := a.anonymous.AuthenticateRequest(r); ok {
			nobody = by.User
		}
	}
	c := &caller{anonymous: nobody, address: clientAddress(r), of: a.identities}
	switch found := c.readTokens(r); {
	case err != nil && len(c.tokens) == 0: // a caller with a bad certificate is not anonymous
		return nil, err
	case found:
		c.wanted = a.logsUsers || r.ContentLength != 0 // bodies in memory are bounded for each user
		c.trusted = len(c.tokens) == 1 && a.identities.isAccepted(c.tokens[0])
		return c, nil
	case nobody == nil:
		return nil, errors.New("the request has no credentials")
	}
	return &caller{asserted: nobody}, nil
}

// namesImpersonation reports whether the Connection header names an impersonation header. A reverse
// proxy would remove this header (RFC 9110, 7.6.1). The local server would then carry out the
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

// fromPeer reports whether the caller has a front-proxy certificate with an allowed name. The hop
// header counts only from such a caller.
func fromPeer(r *http.Request) bool {
	from, _ := r.Context().Value(fromPeerKey{}).(bool)
	return from
}

// closeConnectionAfter ends an HTTP/2 connection after this request, because an unauthenticated
// client can keep a connection busy at little cost (CVE-2023-44487). A kube-apiserver does the same
// (UnauthenticatedHTTP2DOSMitigation). The connection of a peer is not ended: a peer has proved its
// identity, and all callers of the peer share its connection. If that connection were closed,
// requests of other callers would fail.
func closeConnectionAfter(w http.ResponseWriter, r *http.Request, fromPeer bool) {
	if r.ProtoMajor == 2 && !fromPeer {
		w.Header().Set("Connection", "close")
	}
}

// answerError answers with a metav1.Status in the format that the client asked for.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// identify is [proxy.Config.Identify].
func identify(r *http.Request) (user.Info, error) {
	u, err := callerFrom(r.Context()).identify(r.Context())
	if err != nil {
		return nil, err
	}
	if trouble := notCarriedByHeaders(u); trouble != "" {
		return nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(trouble))
	}
	return u, nil
}
