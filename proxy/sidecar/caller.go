package sidecar

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// caller is the client of one request. There are two cases. In the first, the sidecar has
// authenticated the client, by a certificate or as anonymous. In the second, the request has
// credentials of its own, which the local server judges. Then the sidecar learns the user only when
// it must. It is safe for concurrent use.
type caller struct {
	// asserted is the user that the sidecar asserts at the local server; nil if the request has
	// credentials of its own.
	asserted user.Info

	// The fields below are for a request with credentials of its own.

	tokens    []bearer  // in the order in which a kube-apiserver tries them; none: it takes the caller for anonymous
	malformed bool      // there is a token that cannot be decoded: 401 unless another token is good
	anonymous user.Info // the user if there is no token; nil: 401
	address   string    // of the client
	trusted   bool      // the local server has accepted the token lately
	wanted    bool      // learn the user as soon as the local server has accepted the token
	of        *identities

	// cleaned are the published names whose headers were removed from the request for the local
	// server; nil if none were published. It is set for both cases.
	cleaned atomic.Pointer[identityNames]
	// aggregated is true if an aggregated API server answers the request to the local server. It is
	// set for both cases.
	aggregated atomic.Bool

	found    atomic.Pointer[user.Info]
	learning sync.Once
	learnt   chan struct{} // nil until learn; closed when found is set or will never be set
}

type callerKey struct{}

func withCallerOf(ctx context.Context, c *caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerFrom returns the caller of the request's context. If there is none, it returns a caller
// whose asserted user is the user of the context, or an empty user.
func callerFrom(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	u, ok := apirequest.UserFrom(ctx)
	if !ok {
		u = &user.DefaultInfo{} // unreachable behind authentication
	}
	return &caller{asserted: u}
}

// own reports whether the request has credentials of its own.
func (c *caller) own() bool { return c.asserted == nil }

// nobody reports whether the local server treats the caller as anonymous, or refuses it because it
// has no credentials.
func (c *caller) nobody() bool {
	if c.own() {
		return len(c.tokens) == 0 && !c.malformed
	}
	return wire.Anonymous(c.asserted)
}

// readTokens finds the bearer tokens of a request in the same way as a kube-apiserver. found is
// false if the request has nothing that looks like credentials.
func (c *caller) readTokens(r *http.Request) (found bool) {
	note := authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
		c.tokens = append(c.tokens, c.of.bearer(token))
		return nil, false, nil
	})
	_, _, _ = bearertoken.New(note).AuthenticateRequest(r) // the error only says that note accepts no token
	before := len(c.tokens)
	_, _, err := websocket.NewProtocolAuthenticator(note).AuthenticateRequest(r)
	c.malformed = err != nil && len(c.tokens) == before
	return c.malformed || len(c.tokens) > 0 || strings.TrimSpace(r.Header.Get("Authorization")) != ""
}

// identify returns the user. If the user is not known yet, it asks the local server. The error is a
// Status: 401, or 503 if the local server could not be asked.
func (c *caller) identify(ctx context.Context) (user.Info, error) {
	if u, ok := c.user(); ok {
		return u, nil
	}
	for _, b := range c.tokens {
		u, err := c.of.identify(ctx, b, c.address)
		if errors.Is(err, errTokenRefused) {
			continue
		}
		if err == nil {
			c.found.Store(&u)
		}
		return u, err
	}
	if c.nobody() && c.anonymous != nil {
		return c.anonymous, nil
	}
	return nil, apierrors.NewUnauthorized("Unauthorized")
}

// user returns the user if it is already known. It asks no server.
func (c *caller) user() (user.Info, bool) {
	if !c.own() {
		return c.asserted, true
	}
	if u := c.found.Load(); u != nil {
		return *u, true
	}
	if len(c.tokens) == 1 {
		if u, ok := c.of.user(c.tokens[0]); ok {
			c.found.Store(&u)
			return u, true
		}
	}
	return nil, false
}

// seat is the name under which the caller gets its share of limited resources. It is the user, or
// the client's address if the user is not known. Tokens that no server has accepted do not count as
// callers, because a client can invent any number of tokens.
func (c *caller) seat() string {
	if u, ok := c.user(); ok {
		return u.GetName()
	}
	return "\x00" + c.address // no user has this name: no header and no certificate can carry it
}

// apart reports whether a kube-apiserver may end the HTTP/2 connection of a request of this caller.
// It may do so if it treats the caller as anonymous or refuses the token (k8s.io/apiserver,
// endpoints/filters, authentication.go).
func (c *caller) apart() bool {
	if c.own() {
		return !c.trusted
	}
	return wire.Anonymous(c.asserted)
}

// answered uses the local server's answer to a request with the caller's own credentials: it shows
// whether the token is good.
func (c *caller) answered(r *http.Request, status int) {
	switch {
	case len(c.tokens) == 0:
	case status == http.StatusUnauthorized:
		c.of.forget(c.tokens) // a 401 of an aggregated API server, a pod, a service or a node costs only another question
	case len(c.tokens) == 1 && r.Method != http.MethodOptions && provesAuthentication(status):
		c.of.accept(c.tokens[0])
		if c.wanted {
			c.learn()
		}
	}
}

// learn starts to learn the user, on a goroutine.
func (c *caller) learn() {
	c.learning.Do(func() {
		c.learnt = make(chan struct{})
		go func() {
			defer close(c.learnt)
			_, _ = c.identify(context.Background()) // identify logs the error
		}()
	})
}

// name returns the user's name, or "" if it is not known. If learn has started, name waits for its
// result. It must not be called at the same time as answered.
func (c *caller) name(ctx context.Context) string {
	if c.learnt != nil {
		select {
		case <-c.learnt:
		case <-ctx.Done():
		}
	}
	if u, ok := c.user(); ok {
		return u.GetName()
	}
	return ""
}

// provesAuthentication reports whether a kube-apiserver sends a status only after it has
// authenticated the caller. Filters before authentication send 204 for OPTIONS (CORS), 400 for a
// timeout that cannot be parsed, 429, 500, 503 and 504 (k8s.io/apiserver,
// DefaultBuildHandlerChain).
func provesAuthentication(status int) bool {
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusSwitchingProtocols,
		http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	}
	return provesAuthorization(status)
}

// clientAddress is the address of the client, without the port.
func clientAddress(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
