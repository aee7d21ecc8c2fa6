package sidecar

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// Limits of the front door, those of a kube-apiserver (k8s.io/apiserver, secure_serving.go). There is no limit on writing, or watches
// would end; the local server ends other requests after its own --request-timeout.
const (
	readHeaderTimeout = 32 * time.Second
	idleTimeout       = 90 * time.Second
	maxHeaderBytes    = 1 << 20
	maxStreams        = 250 // of one HTTP/2 connection
)

// frontDoor serves HTTPS and knows what it is serving, so that it can end in good order.
type frontDoor struct {
	server *http.Server
	cut    context.CancelFunc // ends the contexts of all requests

	mu         sync.Mutex
	closing    bool                  // begin no more than what is on its way
	closed     bool                  // begin nothing
	short, all int                   // requests that end by themselves, and all of them: net/http does not count upgraded ones
	used       map[net.Conn]struct{} // connections that have had a request and are open; not those of which net/http knows no more
	shortEnded chan struct{}
	allEnded   chan struct{}
	allSent    chan struct{} // whatever was answered has arrived, or never will
}

func newFrontDoor(handler http.Handler, tlsConfig func() *tls.Config, log *slog.Logger) *frontDoor {
	d := &frontDoor{
		used: map[net.Conn]struct{}{}, shortEnded: make(chan struct{}), allEnded: make(chan struct{}), allSent: make(chan struct{}),
	}
	base, cut := context.WithCancel(context.Background())
	d.cut = cut
	d.server = &http.Server{
		Handler:           withInfo(limitBodyTime(bodyTimeout, d.counted(handler))),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: 30 * time.Second},
		ErrorLog:          stdlog.New(serverLog{log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withConnection,
		ConnState:         d.connected,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"},
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return tlsConfig(), nil
			},
		},
	}
	return d
}

// serve accepts until shutdown.
func (d *frontDoor) serve(l net.Listener) error {
	if err := d.server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// counted knows short requests from those that last: watches, streams from and to nodes and pods, and whatever may be upgraded.
func (d *frontDoor) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		short := 1
		if longLived(r) {
			short = 0
		}
		if !d.enter(short) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, "this server has stopped", http.StatusServiceUnavailable)
			return
		}
		defer d.leave(short)
		next.ServeHTTP(w, r)
	})
}

// longLived reports whether a request may go on for ever, by what [withInfo] has found out.
func longLived(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || longRunning(r)
}

// longRunning is what its path says, which decides who serves it: a header that changes nothing else must not keep a request from any bound.
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

// connected follows the connections: only when one is closed has all been sent that handlers have left to it.
func (d *frontDoor) connected(c net.Conn, is http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch is {
	case http.StateActive:
		d.used[c] = struct{}{}
	case http.StateHijacked, http.StateClosed:
		delete(d.used, c)
		d.tell()
	}
}

// close moves on, and tells what has ended. Only the first true of each counts.
func (d *frontDoor) close(closing, closed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = d.closing || closing
	d.closed = d.closed || closed
	d.tell()
}

func (d *frontDoor) tell() {
	if d.closing && d.short == 0 {
		closeOnce(d.shortEnded)
	}
	if d.closed && d.all == 0 {
		closeOnce(d.allEnded)
		if len(d.used) == 0 {
			closeOnce(d.allSent)
		}
	}
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// shutdown accepts no more connections, waits at most timeout for short requests to end, and then cuts what is left. When it returns nil,
// no handler runs.
func (d *frontDoor) shutdown(timeout time.Duration) error {
	// Listeners are closed, clients of HTTP/2 told to go, and connections closed that are idle: once. To go on with that, as with a context that has not
	// ended, would be to close those whose last handler has returned, and which count as idle before they have sent the end of its answer.
	once, end := context.WithCancel(context.Background())
	end()
	_ = d.server.Shutdown(once)
	d.close(true, false)
	within(d.shortEnded, timeout)
	d.close(true, true)
	d.cut() // ends handlers that wait for the local server or for a peer
	within(d.allEnded, cutGrace)
	within(d.allSent, sendGrace)
	d.server.Close() // ends those that wait for their client
	if !within(d.allEnded, endGrace) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Errorf("stop serving: %d requests have not ended %s after their connections were broken", d.all, endGrace)
	}
	return nil
}

// within reports whether something has happened within a time.
func within(happened <-chan struct{}, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-happened:
		return true
	case <-timer.C:
		return false
	}
}

// How long handlers may take to send their last bytes once their contexts have ended, connections to send what handlers have left to them, and handlers to
// notice that their connections are gone. A client that has been told to go closes its connection when it has its last answer; for others net/http does, a
// second later.
const (
	cutGrace  = time.Second
	sendGrace = time.Second
	endGrace  = 5 * time.Second
)

// serverLog is what net/http has to say. Connections that end before there is TLS are load balancers that knock, by the thousand.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Write(p []byte) (int, error) {
	level := slog.LevelWarn
	switch {
	case bytes.HasPrefix(p, []byte("http: TLS handshake error")):
		level = slog.LevelDebug
	case bytes.Contains(p, []byte("panic serving")): // http: or http2:
		level = slog.LevelError
	}
	l.log.Log(context.Background(), level, string(bytes.TrimSpace(p)))
	return len(p), nil
}

// serverTLS keeps the server side of TLS for new connections. Client certificates are asked for and not demanded; they are verified with each
// request, because authorities change and other ways to authenticate remain.
type serverTLS struct {
	credentials *credentials
	current     atomic.Pointer[tls.Config]
}

func newServerTLS(c *credentials) *serverTLS {
	s := &serverTLS{credentials: c}
	s.renew()
	return s
}

func (s *serverTLS) config() *tls.Config { return s.current.Load() }

// renew takes the present certificate for new connections, and names the present authorities to clients, which choose a certificate by them.
func (s *serverTLS) renew() {
	hint := x509.NewCertPool()
	for _, a := range []*authorities{s.credentials.clientCA, s.credentials.requestHeaderCA} {
		if a != nil {
			hint.AppendCertsFromPEM(a.pem)
		}
	}
	s.current.Store(&tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{*s.credentials.serving.current.Load()},
		ClientAuth:   tls.RequestClientCert,
		ClientCAs:    hint,
	})
}

// atFront sends the few paths that are the sidecar's own where they belong, and everything else to the proxy.
func atFront(routed http.Handler, own checks, local, debug http.Handler) http.Handler {
	readyz := &frontReadyz{own: own, local: local}
	debug = forSystemMasters(debug)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := apirequest.RequestInfoFrom(r.Context()); !ok || info.IsResourceRequest {
			routed.ServeHTTP(w, r)
			return
		}
		switch {
		case r.URL.Path == readyzPath:
			readyz.ServeHTTP(w, r)
		case r.URL.Path == debugPeersPath && r.Method == http.MethodGet:
			debug.ServeHTTP(w, r)
		default:
			routed.ServeHTTP(w, r)
		}
	})
}
