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

// Config is what a [Handler] is made of. Store, Local and Transport are required; what the zero value of the others means is said
// with each.
type Config struct {
	// Store is what is known of the local server and of its peers, and the policy. The handler tells it which peers failed and which
	// answered.
	Store *Store

	// Local serves what is served here: the local server's own handler, or in a sidecar a reverse proxy to it.
	Local http.Handler

	// Transport sends requests to peers. It must verify them (TLS) and present a front-proxy client certificate. The request's URL has
	// the scheme https and the peer's address as host. It may be called concurrently, bounds dialling (RoutingPolicy.DialTimeout),
	// and should call the hooks of [net/http/httptrace] as [http.Transport] does: only then, or if its errors say so (see
	// [NotDeliveredError]), is a request that found no connection known not to have been delivered.
	Transport http.RoundTripper

	// UpgradeTransport sends requests that ask for another protocol (WebSocket, SPDY). It must speak HTTP/1.1 only, and give a 101
	// answer a body that is an io.ReadWriteCloser, as [http.Transport] does. Nil: Transport, which is wrong for one that may choose HTTP/2.
	UpgradeTransport http.RoundTripper

	// Splice carries bytes between a client and a peer that have switched to another protocol, both ways, until both have said all, one breaks
	// off, or the context ends, and closes both. early is what the client has sent already. Nil: two goroutines do that.
	Splice func(ctx context.Context, client, peer io.ReadWriteCloser, early io.Reader)

	// FromPeer reports whether the caller has proved to be a peer, by a front-proxy certificate. Nil: nobody is one.
	FromPeer func(*http.Request) bool

	// User is who asks. Nil: [apirequest.UserFrom].
	User func(context.Context) (user.Info, bool)

	// IdentityHeaders tell a peer who asks. Zero: kube-apiserver's defaults, see [DefaultIdentityHeaders].
	IdentityHeaders IdentityHeaders

	// RequestInfo tells what a request is about if its context does not. Nil: the API machinery's factory for /api and /apis.
	RequestInfo apirequest.RequestInfoResolver

	// Now, AfterFunc and Pick are the clock and the choice among equals. AfterFunc calls f once after d unless stopped before; stop reports
	// whether it was in time. Pick returns a number in [0,n) for n > 1. Nil: those of package time and of math/rand/v2.
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	Pick      func(n int) int

	// Observer is told what happens. Nil: nobody is.
	Observer Observer

	// TracerProvider makes a span of every request that is sent to a peer, and of every attempt. Nil: no spans, and a client's
	// own trace headers are passed on as they are.
	TracerProvider trace.TracerProvider

	// Logger is told of failed attempts and ejected peers, addresses included. Nil: nothing is logged.
	Logger *slog.Logger
}

// Handler is the shell of the Mixed Version Proxy: it sends each request where [Table.Decide] says. It stands where the API
// server's own handler would, behind authentication, so that the user is in the request's context.
//
// It starts no goroutine, but for upgraded connections without Config.Splice, and reads no clock but the given one; all waiting is done inside the
// transport, the bodies and the local handler.
//
// When a peer breaks off in the middle of an answer, or the client has gone, it panics with [http.ErrAbortHandler], so that the
// client sees a broken connection and never an answer that looks complete.
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

// New checks the configuration and returns a handler for it.
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
