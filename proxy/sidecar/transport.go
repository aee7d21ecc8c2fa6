package sidecar

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/connections"
)

// peerServerName is the name that peers' serving certificates have to bear (KEP-4020; kube-apiserver, BuildPeerProxy).
const peerServerName = "kubernetes.default.svc"

// How soon a connection whose other end has vanished without a word is given up, streams on it included: a ping after the first
// duration of silence, an answer within the second.
const (
	silence    = 5 * time.Second
	pingAnswer = 5 * time.Second
)

// transport sends requests by verified TLS with a client certificate. Its certificates and authorities can change: requests that begin
// after [transport.renew] use the new ones, on new connections. It is safe for concurrent use. No HTTP proxy of the environment is
// used: what control planes say to each other goes nowhere else.
type transport struct {
	config  func() *tls.Config
	dial    time.Duration // bounds dialling, and the TLS handshake again; zero: 30 s and 10 s, as upstream
	ping    time.Duration // of silence, after which an HTTP/2 connection is tried; zero: never
	conns   connections.Set
	current atomic.Pointer[transports]

	mu      sync.Mutex
	retired []*transports // the last few: may still carry requests, after which their connections are idle
}

// keepRetired is how many transports are kept when certificates change. The connections of older ones close by themselves, idleTimeout
// after their last requests, and with the process at the latest.
const keepRetired = 4

// transports are two because HTTP/2 has no Upgrade (RFC 9113, 8.6): Go sends WebSockets by HTTP/1.1 on its own, SPDY not. And who answers a request
// through a proxy subresource can break the connection on which it is, see throughProxy.
type transports struct{ http2, http1 *http.Transport }

// newTransport returns a transport. Pings are for other machines: the end of a process on this one is told by the kernel at once, and one that
// is merely paused must not lose what is in flight.
func newTransport(dial, ping time.Duration, config func() *tls.Config) *transport {
	t := &transport{config: config, dial: dial, ping: ping}
	t.renew()
	return t
}

// renew makes new requests use the present certificates and authorities. Old connections end when their requests have.
func (t *transport) renew() {
	next := &transports{http2: t.new(true), http1: t.new(false)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.current.Swap(next); old != nil {
		t.retired = append(t.retired, old)
	}
	for _, old := range t.retired {
		old.closeIdle()
	}
	t.retired = slices.Delete(t.retired, 0, max(0, len(t.retired)-keepRetired))
}

func (t *transport) new(http2 bool) *http.Transport {
	dialer := &net.Dialer{
		Timeout:         t.dial,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: pingAnswer, Count: 2},
	}
	handshake := t.dial
	if t.dial == 0 {
		dialer.Timeout, handshake = 30*time.Second, 10*time.Second
	}
	config := t.config()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(http2)
	return &http.Transport{
		DialContext:         t.conns.Dialer(dialer),
		TLSClientConfig:     config,
		TLSHandshakeTimeout: handshake,
		// The client's own Accept-Encoding decides, and what is compressed passes byte for byte.
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     idleTimeout,
		Protocols:           protocols,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: t.ping, PingTimeout: pingAnswer},
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	current := t.current.Load()
	if r.Header.Get("Upgrade") != "" || throughProxy(r) {
		return current.http1.RoundTrip(r)
	}
	return current.http2.RoundTrip(r)
}

// throughProxy reports whether a pod, a service or a node answers. It may answer with more headers than a client of HTTP/2 takes, which ends in an
// error of the connection (golang.org/x/net/http2, Framer.readMetaFrame): nobody else's requests must be on that one.
func throughProxy(r *http.Request) bool {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	return ok && (info.Verb == "proxy" || info.Subresource == "proxy")
}

// http1 sends by HTTP/1.1.
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

// close ends the transport, with all its connections: nobody waits for an answer any more.
func (t *transport) close() {
	t.conns.Close()
	t.CloseIdleConnections() // what the transports keep of them
}

func (t *transports) closeIdle() {
	t.http2.CloseIdleConnections()
	t.http1.CloseIdleConnections()
}

// peerTLS is the client side of TLS to peers, upstreamTLS to the local kube-apiserver; each of the present moment.
func (c *credentials) peerTLS() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      c.peerCA.pool(),
		ServerName:   peerServerName,
		Certificates: []tls.Certificate{*c.proxyClient.current.Load()},
	}
}

func (c *credentials) upstreamTLS(serverName string) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      c.upstreamCA.pool(),
		ServerName:   serverName,
		Certificates: []tls.Certificate{*c.proxyClient.current.Load()},
	}
}
