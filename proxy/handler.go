package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/replay"
)

// Config configures a [Handler]. Store, Local and Transport are required; each other field says
// what its zero value means. All functions and interfaces in it are called concurrently.
type Config struct {
	// Store has the policy and the knowledge of the servers. Package peers or the caller puts the
	// knowledge in. The handler reports to the store which peers failed and which answered.
	Store *Store

	// Local answers requests as the local server: it is its handler or a reverse proxy to it.
	Local http.Handler

	// Transport sends requests to peers, such as an [http.Transport]. It must verify peers'
	// certificates, present a front-proxy client certificate, and bound the time of dialling
	// (RoutingPolicy.DialTimeout). Requests have the scheme https and the peer's address as host. A
	// transport that is not an http.Transport should call the hooks of [net/http/httptrace] or
	// return a [NotDeliveredError]. Otherwise a request that got no connection counts as possibly
	// delivered.
	//
	// A request's context has its user (apirequest.UserFrom). The transport should send three kinds
	// of requests on connections that no other request uses at that time, as HTTP/1.1 does:
	//   - requests of anonymous users, because a kube-apiserver closes an HTTP/2 connection after
	//     such a request;
	//   - requests with nearly 500 header values or more, because a server that was built with Go 1.27
	//     or newer may close the connection, too;
	//   - requests with a Body and no GetBody, because they cannot be sent again if another request
	//     causes the connection to be closed.
	Transport http.RoundTripper

	// UpgradeTransport sends requests for another protocol (WebSocket, SPDY). It must use HTTP/1.1,
	// and the body of its 101 answers must be an io.ReadWriteCloser, as with [http.Transport]. Nil:
	// Transport is used, which then must not choose HTTP/2.
	UpgradeTransport http.RoundTripper

	// Splice copies bytes both ways between a client and a peer after an upgrade. It returns when
	// both have ended, one fails or the context ends, and it closes both. early has the bytes that
	// the client has sent already. Nil: two goroutines copy.
	Splice func(ctx context.Context, client, peer io.ReadWriteCloser, early io.Reader)

	// FromPeer reports whether a front-proxy certificate proves that the caller is a peer. Nil:
	// never.
	FromPeer func(*http.Request) bool

	// Identify returns the authenticated user of a request that the handler sends to a peer. The
	// client gets its error as the answer, with the status of the error (see apierrors.APIStatus).
	// It is also called for a request whose answer is a merged OpenAPI description; then after an
	// error the local server answers. It is not called for other requests. Nil:
	// [apirequest.UserFrom] of the request's context.
	Identify func(*http.Request) (user.Info, error)

	// Authorize reports whether this server would let the caller do what the request asks for. The
	// handler calls it before it answers 503 itself, because some callers may not learn the
	// resource and the peers that the 503 names. It also calls it before a 400 that reveals that a
	// peer serves the resource. The client gets a refusal as the answer instead. After an error,
	// the 503 names nothing, and the client does not see the error. The request's context has its
	// RequestInfo. Nil: no 503 names anything. Use [Authorized] for a handler behind an
	// authorization filter.
	Authorize func(*http.Request) (refusal *metav1.Status, err error)

	// IdentityHeaders names the headers in which a peer reads the user. Zero:
	// [DefaultIdentityHeaders].
	IdentityHeaders IdentityHeaders

	// Document fetches a JSON document from a peer, with this server's identity and not with the
	// client's. It must bound the time and the size of the fetch, as Document of package peers
	// does. Its error gives the reason without addresses. Nil: merged documents have only the
	// information of aggregated discovery. Then the OpenAPI description of a group version that
	// several servers serve is the local server's, and the legacy list has no hashes of storage
	// versions.
	Document func(ctx context.Context, p PeerView, path string) (body []byte, etag string, err error)

	// RequestInfo parses a request whose context has no RequestInfo. Nil: a parser for /api and
	// /apis.
	RequestInfo apirequest.RequestInfoResolver

	// Now is the clock. Nil: [time.Now].
	Now func() time.Time
	// Pick chooses among n > 1 equal peers: a number in [0,n). Nil: [rand.IntN].
	Pick func(n int) int

	// Observer observes decisions and attempts. Nil: no observer.
	Observer Observer

	// TracerProvider makes a span for every forwarded request and for every attempt. Nil: no spans,
	// and clients' trace headers are passed on unchanged.
	TracerProvider trace.TracerProvider

	// Logger logs failed attempts, at most one a second, and ejected peers, with addresses. Nil: no
	// logs.
	Logger *slog.Logger
}

// Handler is the shell of the Mixed Version Proxy: it sends each request where [Table.Decide] says.
// Make it with [New]. It replaces the API server's own handler. It must be behind authentication,
// which puts the user into the request's context, and behind authorization.
//
// It starts no goroutines, except for upgraded connections without Config.Splice. It reads no clock
// but Config.Now. It waits only in the transport, the bodies and the local handler. If a peer ends
// the connection in the middle of an answer, or the client closes its connection, the handler
// panics with [http.ErrAbortHandler], so that the client sees a broken connection.
type Handler struct {
	config   Config // with a value for each field but TracerProvider
	store    *Store
	identity identityHeaders
	now      func() time.Time
	observer Observer
	tracer   *tracer
	log      *slog.Logger
	warned   atomic.Int64 // the second in which a failed attempt was last logged

	// identifies says whether Config.Identify was set: then the context of a request may lack its
	// user. A context that has the user is not changed. The reason is that contexts that are
	// derived from a caller's own context type would cost a goroutine.
	identifies bool

	inFlight  inFlight
	bodies    *replay.Budget
	documents [roots]documentCache

	peerDocuments peerDocuments
	openAPI       *descriptions
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
	if c.UpgradeTransport == nil {
		c.UpgradeTransport = c.Transport
	}
	if c.Splice == nil {
		c.Splice = splice
	}
	if c.FromPeer == nil {
		c.FromPeer = func(*http.Request) bool { return false }
	}
	identifies := c.Identify != nil
	if !identifies {
		c.Identify = func(r *http.Request) (user.Info, error) {
			if u, ok := apirequest.UserFrom(r.Context()); ok {
				return u, nil
			}
			return nil, apierrors.NewInternalError(errNobody)
		}
	}
	if c.Authorize == nil {
		c.Authorize = func(*http.Request) (*metav1.Status, error) { return nil, errUnauthorizable }
	}
	if c.RequestInfo == nil {
		c.RequestInfo = &apirequest.RequestInfoFactory{
			APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Pick == nil {
		c.Pick = rand.IntN
	}
	if c.Observer == nil {
		c.Observer = Observers(nil)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Handler{
		config: c, store: c.Store, identity: identity, now: c.Now, observer: c.Observer,
		tracer: newTracer(c.TracerProvider), log: c.Logger, bodies: replay.NewBudget(),
		identifies: identifies, openAPI: newDescriptions(),
	}, nil
}
