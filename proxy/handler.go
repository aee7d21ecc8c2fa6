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
	// It must use HTTP/1.1 for a request that has the header Upgrade (WebSocket, SPDY), and the body
	// of a 101 answer must be an io.ReadWriteCloser, as with [http.Transport].
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

	// Splice copies bytes both ways between a client and a peer after an upgrade. It returns when
	// both have ended, one fails or the context ends, and it closes both. early has the bytes that
	// the client has sent already. Nil: two goroutines copy.
	Splice func(ctx context.Context, client, peer io.ReadWriteCloser, early io.Reader)

	// FromPeer reports whether a front-proxy certificate proves that the caller is a peer. Nil:
	// never.
	FromPeer func(*http.Request) bool

	// IdentityHeaders names the headers in which a peer reads the user.
	IdentityHeaders IdentityHeaders

	// Document fetches a JSON document from a peer, with this server's identity and not with the
	// client's. It must bound the time and the size of the fetch, as Document of package peers
	// does. Its error gives the reason without addresses. Nil: merged documents have only the
	// information of aggregated discovery. Then the OpenAPI description of a group version that
	// several servers serve is the local server's, and the legacy list has no hashes of storage
	// versions.
	Document func(ctx context.Context, p PeerView, path string) (body []byte, etag string, err error)

	// Now is the clock. Nil: [time.Now].
	Now func() time.Time
	// Pick chooses among n > 1 equal peers: a number in [0,n). Nil: [rand.IntN].
	Pick func(n int) int

	// Observer observes decisions and attempts. Nil: no observer.
	Observer Observer

	// Logger logs failed attempts, at most one a second, and ejected peers, with addresses. Nil: no
	// logs.
	Logger *slog.Logger
}

// Handler is the shell of the Mixed Version Proxy: it sends each request where [Table.Decide] says.
// Make it with [New]. It replaces the API server's own handler. It must be behind authentication,
// which puts the user into the request's context (apirequest.WithUser), and behind authorization:
// its 503s name the resource and the peers.
//
// It starts no goroutines, except for upgraded connections without Config.Splice. It reads no clock
// but Config.Now. It waits only in the transport, the bodies and the local handler. If a peer ends
// the connection in the middle of an answer, or the client closes its connection, the handler
// panics with [http.ErrAbortHandler], so that the client sees a broken connection.
type Handler struct {
	config   Config // with a value for each field
	store    *Store
	identity IdentityHeaders
	now      func() time.Time
	observer Observer
	log      *slog.Logger
	warned   atomic.Int64 // the second in which a failed attempt was last logged

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
	identity, err := c.IdentityHeaders.canonical()
	if err != nil {
		return nil, err
	}
	if c.Splice == nil {
		c.Splice = splice
	}
	if c.FromPeer == nil {
		c.FromPeer = func(*http.Request) bool { return false }
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
		log: c.Logger, openAPI: newDescriptions(),
	}, nil
}
