package sidecar

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/connections"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// peerServerName is the name that serving certificates of peers must have (KEP-4020;
// kube-apiserver, BuildPeerProxy).
const peerServerName = "kubernetes.default.svc"

// When the other end of a connection vanishes, the connection and its streams are closed. After
// silence without any data, the transport sends a ping. The other end must answer within
// pingAnswer.
const (
	silence    = 5 * time.Second
	pingAnswer = 5 * time.Second
)

// transport sends requests over verified TLS. Requests that begin after [transport.renew] use the
// new certificates and authorities, on new connections. It is safe for concurrent use. It ignores
// HTTP proxies from the environment.
type transport struct {
	config func() *tls.Config
	dial   time.Duration // bounds dialling, and the TLS handshake separately; zero: 30 s and 10 s, as upstream
	ping   time.Duration // silence before an HTTP/2 ping; zero: no pings
	// admit is called for each new connection before it is used, with the names of [transport.use].
	// nil: all connections are used, by all requests.
	admit   func(context.Context, *identityNames) error
	names   atomic.Pointer[identityNames]
	conns   connections.Set
	current atomic.Pointer[transports]

	mu      sync.Mutex
	retired []*transports // the last few; they may still carry requests
}

// keepRetired is how many old transports are kept when certificates change. The connections of even
// older ones close idleTimeout after their last requests, or with the process.
const keepRetired = 4

// transports has two transports, because HTTP/2 has no Upgrade (RFC 9113, 8.6), and Go falls back
// to HTTP/1.1 only for WebSockets and not for SPDY. [answeredByOthers] gives another reason.
type transports struct {
	http2, http1 *http.Transport
	names        *identityNames // of admit
}

// newTransport returns a transport. Use pings for peers, not for the local server. If the local
// server's process ends, the kernel reports this at once. If the process is only paused, its
// requests must not be lost.
func newTransport(dial, ping time.Duration, config func() *tls.Config) *transport {
	t := &transport{config: config, dial: dial, ping: ping}
	t.renew()
	return t
}

// renew makes new requests use the present certificates and authorities. Old connections are closed
// after their last requests.
func (t *transport) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := t.names.Load()
	next := &transports{http2: t.new(true, names), http1: t.new(false, names), names: names}
	if old := t.current.Swap(next); old != nil {
		t.retired = append(t.retired, old)
	}
	for _, old := range t.retired {
		old.closeIdle()
	}
	t.retired = slices.Delete(t.retired, 0, max(0, len(t.retired)-keepRetired))
}

func (t *transport) new(http2 bool, names *identityNames) *http.Transport {
	dialer := &net.Dialer{
		Timeout:         t.dial,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: pingAnswer, Count: 2},
	}
	handshake := t.dial
	if t.dial == 0 {
		dialer.Timeout, handshake = 30*time.Second, 10*time.Second
	}
	idle, expect := idleTimeout, time.Duration(0)
	if !http2 {
		// A kube-apiserver closes idle connections after idleTimeout. If the sidecar sends a write
		// on such a connection at that moment, it cannot repeat the write.
		idle, expect = idleTimeout/3, expectTimeout
	}
	config := t.config()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(http2)
	return &http.Transport{
		DialContext:         t.admitted(names, t.conns.Dialer(dialer)),
		TLSClientConfig:     config,
		TLSHandshakeTimeout: handshake,
		DisableCompression:  true, // the client's own Accept-Encoding decides
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     idle,
		Protocols:           protocols,
		// This is for HTTP/1.1 only: over HTTP/2, requests with bodies have GetBody, and need not
		// wait.
		ExpectContinueTimeout: expect,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: t.ping, PingTimeout: pingAnswer, MaxReceiveBufferPerStream: streamWindow},
	}
}

// admitted returns a dialer that closes connections that are not admitted.
func (t *transport) admitted(
	names *identityNames, dial func(context.Context, string, string) (net.Conn, error),
) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil || t.admit == nil {
			return conn, err
		}
		if err := t.admit(ctx, names); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// use makes requests from now on use new connections, which are admitted for these names.
func (t *transport) use(names *identityNames) {
	t.names.Store(names)
	t.renew()
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	current := t.current.Load()
	if t.admit != nil && current.names != callerFrom(r.Context()).cleaned.Load() {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must
		}
		return nil, errNamesChanged
	}
	switch {
	case !repeatable(r) && !throughProxy(r):
		return current.http1.RoundTrip(expecting(r))
	case r.Header.Get("Upgrade") != "" || answeredByOthers(r) || apart(r):
		return current.http1.RoundTrip(r)
	}
	return current.http2.RoundTrip(r)
}

// needsOwnConnection reports whether a request must not share a connection with others. The reason
// is that a kube-apiserver may close an HTTP/2 connection: after a request of a caller whom it does
// not know (see [caller.apart]) and, with --goaway-chance, after any request. It then ignores
// requests that came later. The client sends these again on another connection, if it can.
func needsOwnConnection(r *http.Request) bool { return apart(r) || !repeatable(r) }

// occupiesConnection reports whether a request for the local server needs a connection that no open
// connection of its client accounts for. A client can send a hundred such requests on one HTTP/2
// connection. An upgrade is not among them, because HTTP/2 has no upgrades.
func occupiesConnection(r *http.Request) bool { return needsOwnConnection(r) || answeredByOthers(r) }

// apart is [caller.apart]. For a request to a peer, the sidecar asserts the user, and only this
// user counts.
func apart(r *http.Request) bool {
	if u, ok := apirequest.UserFrom(r.Context()); ok {
		return wire.Anonymous(u)
	}
	c, ok := r.Context().Value(callerKey{}).(*caller)
	return ok && c.apart()
}

// repeatable reports whether the request can be sent again from its beginning.
func repeatable(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// expectTimeout is how long a body waits until the server asks for it. A busy server may first put
// the request into a queue.
const expectTimeout = 10 * time.Second

// expecting makes the body wait until the server reads it. A kube-apiserver reads it after
// authorization. So no server has to receive a body that the caller may not send.
func expecting(r *http.Request) *http.Request {
	waits := *r
	waits.Header = maps.Clone(r.Header)
	waits.Header["Expect"] = []string{"100-continue"}
	return &waits
}

// groupVersionOf returns the group version that a path is about: a resource, its discovery, or its
// OpenAPI description.
func groupVersionOf(path string) (gv schema.GroupVersion, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(path, "/openapi/v3"), "/apis/")
	group, rest, found := strings.Cut(rest, "/")
	version, _, _ := strings.Cut(rest, "/")
	return schema.GroupVersion{Group: group, Version: version}, ok && found && version != ""
}

// answeredByOthers reports whether the local server passes the request on to a pod, a service, a
// node or an aggregated API server. Each of them may send more headers than an HTTP/2 client
// accepts, and then the whole connection fails (golang.org/x/net/http2, Framer.readMetaFrame). It
// may also send informational answers without end. So these requests do not share connections with
// others.
func answeredByOthers(r *http.Request) bool {
	c, ok := r.Context().Value(callerKey{}).(*caller)
	return throughProxy(r) || ok && c.aggregated.Load()
}

// throughProxy reports whether a pod, a service or a node answers the request.
func throughProxy(r *http.Request) bool {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	return ok && wire.ThroughProxy(info)
}

// http1 sends requests over HTTP/1.1.
type http1 struct{ *transport }

func (t http1) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current.Load().http1.RoundTrip(r)
}

// CloseIdleConnections closes connections that carry no request.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, each := range append(t.retired[:len(t.retired):len(t.retired)], t.current.Load()) {
		each.closeIdle()
	}
}

// close closes the transport and all its connections.
func (t *transport) close() {
	t.conns.Close()
	t.CloseIdleConnections()
}

func (t *transports) closeIdle() {
	t.http2.CloseIdleConnections()
	t.http1.CloseIdleConnections()
}

// anyoneTLS returns the TLS client configuration without a client certificate.
func (c *credentials) anyoneTLS(ca *authorities, serverName string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ca.pool(), ServerName: serverName}
}

// clientTLS adds the present front-proxy certificate to the configuration of anyoneTLS. The
// certificate is always sent, even if the server's CA hint does not name its issuer. With
// [tls.Config.Certificates], Go would then send no certificate, and the server would take the
// request for anonymous instead of refusing it.
func (c *credentials) clientTLS(ca *authorities, serverName string) *tls.Config {
	certificate, config := c.proxyClient.current.Load(), c.anyoneTLS(ca, serverName)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	return config
}
