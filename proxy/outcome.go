package proxy

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"

	"golang.org/x/net/http2"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// NotDeliveredError may be implemented by errors of a transport. If NotDelivered is true, the
// request certainly did not reach the peer. Errors of [net/http.Transport] need not implement it.
type NotDeliveredError interface {
	error
	NotDelivered() bool
}

// outcomeOf says whether a request without an answer was certainly not delivered. In case of doubt
// the outcome is Undecided.
//
// A transport that found no connection delivered nothing. It may have tried an idle connection
// before. But then it repeats a request only if that connection did not take the request, or if the
// request may be repeated anyway (net/http, shouldRetryRequest; x/net/http2, canRetryError). A
// failed dial says nothing about a request that was written earlier on another connection; see
// attemptTrace.
func outcomeOf(err error, trace *attemptTrace) Outcome {
	reached := trace.delivery()
	if reached == connecting {
		return NotDelivered
	}
	var said NotDeliveredError
	if errors.As(err, &said) && said.NotDelivered() {
		return NotDelivered
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && reached != written {
		return NotDelivered
	}
	var stream http2.StreamError
	if errors.As(err, &stream) && stream.Code == http2.ErrCodeRefusedStream {
		return NotDelivered // RFC 9113, 8.7: no processing was done
	}
	return Undecided
}

// troubleOf describes a peer's problem without an address.
func troubleOf(err error, outcome Outcome) string {
	var timeout net.Error
	switch {
	case wire.Is[*tls.CertificateVerificationError](err), wire.Is[x509.UnknownAuthorityError](err),
		wire.Is[x509.HostnameError](err), wire.Is[x509.CertificateInvalidError](err):
		return "its certificate was not accepted"
	case wire.SentAlert(err):
		return "it broke the TLS connection off"
	case wire.Is[tls.RecordHeaderError](err):
		return "it does not speak TLS"
	case outcome == NotDelivered && errors.As(err, &timeout) && timeout.Timeout():
		return "it could not be reached in time"
	case outcome == NotDelivered:
		return "it could not be reached"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it did not answer in time"
	}
	return "the connection broke before it answered"
}

// attemptTrace records how far a request got. It passes informational answers on to the client (RFC
// 9110, 15.2), except 100, which the server sends itself when it reads the body, and 101, which
// HTTP/2 does not have.
//
// The transport calls its hooks while it reads a connection that others share. So another goroutine
// writes the informational answers, and those for which a slow client has no room are dropped.
type attemptTrace struct {
	mu    sync.Mutex
	state delivery
	conn  net.Conn // the last connection
	w     http.ResponseWriter
	ended bool
	trace httptrace.ClientTrace

	informed chan informational // nil until the first
	written  chan struct{}      // closed when all in informed are written
}

type delivery int

const (
	untraced   delivery = iota // the transport says nothing
	connecting                 // no connection yet
	connected
	written
)

func (a *attemptTrace) hooks() *httptrace.ClientTrace {
	a.trace = httptrace.ClientTrace{
		GetConn: func(string) { a.set(connecting, nil) },
		GotConn: func(i httptrace.GotConnInfo) { a.set(connected, i.Conn) },
		// The peer may have the request now. This stays true if the transport then tries another
		// connection (net/http does so for a GET) and finds none.
		WroteHeaders: func() { a.set(written, nil) },
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			a.pass(informational{code, http.Header(header)})
			return nil
		},
	}
	return &a.trace
}

func (a *attemptTrace) set(s delivery, c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != written || s == connecting && isHTTP2(a.conn) {
		a.state, a.conn = s, cmp.Or(c, a.conn)
	}
}

// isHTTP2 reports whether a connection uses HTTP/2. With HTTP/2, a transport sends a request on
// another connection only if the peer says that it did not process the request (RFC 9113, 8.7;
// x/net/http2, canRetryError).
//
// It has a large frame, and most requests do not need its answer. A smaller frame of its caller
// keeps the stacks of requests from being copied into larger ones.
//
//go:noinline
func isHTTP2(c net.Conn) bool {
	secured, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	return ok && secured.ConnectionState().NegotiatedProtocol == "h2"
}

// tried reports whether the transport tried a connection to the peer before an error. A transport
// refuses some requests before that, such as requests with invalid headers. Then the peer is not to
// blame.
func (a *attemptTrace) tried(err error) bool {
	return a.delivery() != untraced || wire.Is[*net.OpError](err) || wire.Is[NotDeliveredError](err)
}

func (a *attemptTrace) delivery() delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}
