package sidecar

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// idleTimeout is the time after which idle connections are closed, as in a kube-apiserver.
const idleTimeout = 90 * time.Second

// maxStreams is how many requests a client may have in flight on one connection if
// --http2-max-streams-per-connection is not set. streamWindow is how many bytes of one request
// body, or of another server's answer, wait here for a reader. Both values are a kube-apiserver's
// (k8s.io/apiserver, secure_serving.go).
const (
	maxStreams   = 100
	streamWindow = 256 << 10
)

// frontLimits are the limits of the front door that flags set.
type frontLimits struct {
	streams int           // of one connection
	request time.Duration // of one request
}

func (o *Options) frontLimits() frontLimits {
	return frontLimits{streams: cmp.Or(o.HTTP2MaxStreams, maxStreams), request: o.RequestTimeout}
}

// These are times of a shutdown. cutGrace is how long it waits for handlers to return after their
// contexts ended. sendGrace is how long it waits for connections to send the rest of the answers.
// endGrace is how long it waits for handlers to return after their connections were closed.
const (
	cutGrace  = time.Second
	sendGrace = time.Second // net/http closes an HTTP/2 connection a second after its last stream
	endGrace  = 5 * time.Second
)

// frontDoor serves HTTPS. It counts its requests and connections, so that it can drain them.
type frontDoor struct {
	server *http.Server
	cut    context.CancelFunc // ends the contexts of all requests

	mu         sync.Mutex
	closing    bool                  // no new connections
	closed     bool                  // no new requests
	short, all int                   // requests that end by themselves, and all requests: net/http does not count upgraded ones
	used       map[net.Conn]struct{} // open connections that have had a request, except hijacked ones
	shortEnded chan struct{}
	allEnded   chan struct{}
	allSent    chan struct{} // every answer is sent, or its connection is closed
}

func newFrontDoor(handler http.Handler, limits frontLimits, tlsConfig func(*tls.ClientHelloInfo) (*tls.Config, error),
	log *slog.Logger) *frontDoor {
	d := &frontDoor{
		used: map[net.Conn]struct{}{}, shortEnded: make(chan struct{}), allEnded: make(chan struct{}), allSent: make(chan struct{}),
	}
	base, cut := context.WithCancel(context.Background())
	d.cut = cut
	// The limits are a kube-apiserver's (k8s.io/apiserver, secure_serving.go). It has no limit on
	// writing, because watches last; see limitWriteTime.
	handler = limitRequestTime(limits.request, limitBodyTime(limits.request, d.counted(handler)))
	d.server = &http.Server{
		Handler:           withInfo(limitWriteTime(writeTimeout, handler)),
		ReadHeaderTimeout: 32 * time.Second,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    1 << 20,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: limits.streams, SendPingTimeout: 30 * time.Second,
			// If no handler reads some uploads, there must be room for the other requests of their
			// connection.
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: limits.streams * streamWindow,
			MaxReadFrameSize: streamWindow,
			WriteByteTimeout: writeTimeout, // a client may also stop reading the connection
		},
		ErrorLog:    stdlog.New(serverLog{log}, "", 0),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: withConnection,
		ConnState:   d.connected,
		TLSConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			NextProtos:         []string{"h2", "http/1.1"},
			GetConfigForClient: tlsConfig,
		},
	}
	return d
}

// serve accepts connections until shutdown.
func (d *frontDoor) serve(l net.Listener) error { return unlessClosed(d.server.ServeTLS(l, "", "")) }

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// counted counts the requests. All requests are short except watches, streams to and from nodes and
// pods, and requests that may be upgraded.
func (d *frontDoor) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		short := 1
		if r.Header.Get("Upgrade") != "" || longRunning(r) {
			short = 0
		}
		if !d.enter(short) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Cache-Control", cacheControl)
			http.Error(w, "this server is shutting down", http.StatusServiceUnavailable)
			return
		}
		defer d.leave(short)
		next.ServeHTTP(w, r)
	})
}

// longRunning reports whether the answer may last for ever. It looks only at the path and the
// query, because a client must not be able to avoid a time limit with a header.
func longRunning(r *http.Request) bool {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	return ok && wire.LongRunning(info)
}

func (d *frontDoor) enter(short int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.short += short
	d.all++
	return true
}

func (d *frontDoor) leave(short int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.short -= short
	d.all--
	d.tell()
}

// connected is for [http.Server.ConnState]. Only when a connection is closed is it certain that its
// answers are sent, because handlers return earlier.
func (d *frontDoor) connected(c net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state {
	case http.StateActive:
		d.used[c] = struct{}{}
	case http.StateHijacked, http.StateClosed:
		delete(d.used, c)
		d.tell()
	}
}

// close sets closing or closed.
func (d *frontDoor) close(stage *bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*stage = true
	d.tell()
}

// tell closes the channels whose conditions have become true.
func (d *frontDoor) tell() {
	closeIf(d.closing && d.short == 0, d.shortEnded)
	closeIf(d.closed && d.all == 0, d.allEnded)
	closeIf(d.closed && d.all == 0 && len(d.used) == 0, d.allSent)
}

// closeIf closes a channel if a condition holds and it is open.
func closeIf(holds bool, c chan struct{}) {
	select {
	case <-c:
	default:
		if holds {
			close(c)
		}
	}
}

// shutdown accepts no more connections, waits at most timeout for short requests to end, and then
// cuts the other requests. When it returns nil, no handler runs.
func (d *frontDoor) shutdown(timeout time.Duration) error {
	// Close the listeners and the idle connections, and send GOAWAY to HTTP/2 clients, but only
	// once. A Shutdown that waits would continue to close idle connections. A connection counts as
	// idle when its last handler has returned, and the end of the answer may not be sent then.
	once, end := context.WithCancel(context.Background())
	end()
	_ = d.server.Shutdown(once)
	d.close(&d.closing)
	within(d.shortEnded, timeout)
	d.close(&d.closed)
	d.cut() // ends handlers that wait for the local server or for a peer
	within(d.allEnded, cutGrace)
	within(d.allSent, sendGrace)
	d.server.Close() // ends handlers that wait for their client
	if !within(d.allEnded, endGrace) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Errorf("stop serving: %d requests are still running %s after their connections were closed", d.all, endGrace)
	}
	return nil
}

// within waits at most a given time for a channel to be closed, and reports whether it was closed.
func within(closed <-chan struct{}, atMost time.Duration) bool {
	select {
	case <-closed:
		return true
	case <-time.After(atMost):
		return false
	}
}

// serverLog logs the messages of net/http. It logs failed TLS handshakes at debug level only,
// because load balancers that check the port cause thousands of them.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Write(p []byte) (int, error) {
	level := slog.LevelWarn
	switch {
	case bytes.HasPrefix(p, []byte("http: TLS handshake error")):
		level = slog.LevelDebug
	case bytes.Contains(p, []byte("panic serving")): // the message begins with http: or http2:
		level = slog.LevelError
	}
	l.log.Log(context.Background(), level, string(bytes.TrimSpace(p)))
	return len(p), nil
}

// atFront serves the few paths of the sidecar itself, and passes all other requests to the proxy.
func atFront(routed http.Handler, own checks, local, debug, metrics http.Handler) http.Handler {
	readyz := &frontReadyz{own: own, local: local}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := apirequest.RequestInfoFrom(r.Context())
		switch {
		case strangeTarget(r):
			answerError(w, r, apierrors.NewBadRequest("the request's target must begin with a slash"))
		case !ok || info.IsResourceRequest:
			routed.ServeHTTP(w, r)
		case r.URL.Path == readyzPath:
			readyz.ServeHTTP(w, r)
		case r.URL.Path == debugPeersPath && r.Method == http.MethodGet:
			debug.ServeHTTP(w, r)
		case r.URL.Path == metricsPath && r.Method == http.MethodGet:
			metrics.ServeHTTP(w, r)
		default:
			routed.ServeHTTP(w, r)
		}
	})
}

// strangeTarget reports whether a request has a target that no transport sends unchanged. One form
// is opaque, such as "x:https://host/path", whose path is empty. Another form is an HTTP/2 target
// that is not a path (RFC 9113, 8.3.1). The local server would get a request for something else. It
// would itself answer 404 to the first form, and end the stream of the second.
func strangeTarget(r *http.Request) bool {
	return r.URL.Opaque != "" ||
		r.ProtoMajor == 2 && r.Method != http.MethodConnect && r.RequestURI != "*" && !strings.HasPrefix(r.RequestURI, "/")
}
