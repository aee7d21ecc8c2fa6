package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Config configures a [Handler]. Store, Local and Transport are required; each other field says what its zero value means. All
// functions and interfaces in it are called concurrently.
type Config struct {
	// Store holds the policy and what is known of the local server and its peers. Package peers feeds it; so may the caller, with
	// [Store.Observe]. The handler tells it which peers failed and which answered.
	Store *Store

	// Local serves what the local server serves: its own handler, or in a sidecar a reverse proxy to it.
	Local http.Handler

	// Transport sends requests to peers, such as an [http.Transport]. It must verify the certificates of peers, present a front-proxy
	// client certificate, and bound dialling (RoutingPolicy.DialTimeout). The request's URL has the scheme https and the peer's address
	// as host. A transport other than [http.Transport] should call the hooks of [net/http/httptrace] or return a [NotDeliveredError]:
	// otherwise a request that found no connection counts as possibly delivered.
	Transport http.RoundTripper

	// UpgradeTransport sends requests that ask for another protocol (WebSocket, SPDY). It must speak HTTP/1.1 only, and the body of its
	// 101 answers must be an io.ReadWriteCloser, as with [http.Transport]. Nil: Transport, which must not choose HTTP/2 then.
	UpgradeTransport http.RoundTripper

	// Splice copies bytes both ways between a client and a peer that have switched to another protocol, until both have ended, one fails
	// or the context ends, and then closes both. early is what the client has sent already. Nil: two goroutines do that.
	Splice func(ctx context.Context, client, peer io.ReadWriteCloser, early io.Reader)

	// FromPeer reports whether the caller has proved, by a front-proxy certificate, to be a peer. Nil: no caller is a peer.
	FromPeer func(*http.Request) bool

	// User returns the authenticated user of a request's context. Nil: [apirequest.UserFrom].
	User func(context.Context) (user.Info, bool)

	// IdentityHeaders names the headers that tell a peer who the user is. Zero: [DefaultIdentityHeaders].
	IdentityHeaders IdentityHeaders

	// RequestInfo parses requests whose context has no RequestInfo. Nil: the factory of the API machinery for /api and /apis.
	RequestInfo apirequest.RequestInfoResolver

	// Now is the clock. Nil: [time.Now].
	Now func() time.Time
	// AfterFunc calls f once after d, unless stop is called before; stop reports whether it was in time. Nil: [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Pick chooses among n > 1 equal peers: a number in [0,n). Nil: [rand.IntN].
	Pick func(n int) int

	// Observer is told what happens. Nil: none.
	Observer Observer

	// TracerProvider makes a span for every request that is sent to a peer, and one for every attempt. Nil: no spans, and the trace
	// headers of clients are passed on unchanged.
	TracerProvider trace.TracerProvider

	// Logger gets failed attempts and ejected peers, addresses included. Nil: nothing is logged.
	Logger *slog.Logger
}

// Handler is the shell of the Mixed Version Proxy: it sends each request where [Table.Decide] says. Make it with [New]. It takes the
// place of the API server's own handler, behind authentication (which puts the user into the request's context) and authorization.
//
// It starts no goroutines, except for upgraded connections without Config.Splice, and reads no clock but Config.Now. It waits only in
// the transport, the bodies and the local handler.
//
// If a peer ends the connection in the middle of an answer, or the client has gone, the handler panics with [http.ErrAbortHandler], so
// that the client sees a broken connection and never an answer that looks complete.
type Handler struct {
	store            *Store
	local            http.Handler
	transport        http.RoundTripper
	upgradeTransport http.RoundTripper
	splice           func(ctx context.Context, client, peer io.ReadWriteCloser, early io.Reader)
	fromPeer         func(*http.Request) bool
	user             func(context.Context) (user.Info, bool)
	identity         identityHeaders
	requestInfo      apirequest.RequestInfoResolver
	now              func() time.Time
	afterFunc        func(time.Duration, func()) func() bool
	pick             func(int) int
	observer         Observer
	tracer           *tracer
	log              *slog.Logger

	inFlight  inFlight
	documents [roots]documentCache
}

// New returns a handler. The error says which field of the configuration is missing or wrong.
func New(c Config) (*Handler, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("make a proxy handler: Config.Store is missing: there is nothing to decide by")
	case c.Local == nil:
		return nil, errors.New("make a proxy handler: Config.Local is missing: nothing could be served here")
	case c.Transport == nil:
		return nil, errors.New("make a proxy handler: Config.Transport is missing: no peer could be reached")
	}
	identity, err := newIdentityHeaders(c.IdentityHeaders)
	if err != nil {
		return nil, err
	}
	h := &Handler{
		store:            c.Store,
		local:            c.Local,
		transport:        c.Transport,
		upgradeTransport: c.UpgradeTransport,
		splice:           c.Splice,
		fromPeer:         c.FromPeer,
		user:             c.User,
		identity:         identity,
		requestInfo:      c.RequestInfo,
		now:              c.Now,
		afterFunc:        c.AfterFunc,
		pick:             c.Pick,
		observer:         c.Observer,
		tracer:           newTracer(c.TracerProvider),
		log:              c.Logger,
	}
	if h.upgradeTransport == nil {
		h.upgradeTransport = h.transport
	}
	if h.splice == nil {
		h.splice = splice
	}
	if h.fromPeer == nil {
		h.fromPeer = func(*http.Request) bool { return false }
	}
	if h.user == nil {
		h.user = apirequest.UserFrom
	}
	if h.requestInfo == nil {
		h.requestInfo = &apirequest.RequestInfoFactory{
			APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
		}
	}
	if h.now == nil {
		h.now = time.Now
	}
	if h.afterFunc == nil {
		h.afterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if h.pick == nil {
		h.pick = rand.IntN
	}
	if h.observer == nil {
		h.observer = Observers(nil)
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	return h, nil
}
