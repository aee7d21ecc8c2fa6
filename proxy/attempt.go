package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	errNoAnswerInTime = errors.New("no headers of an answer within the time for one attempt")
	errBusy           = errors.New("too many requests to this peer are in flight")
	errRefused        = errors.New("the peer does not serve this resource")
)

// try makes one attempt. It reports whether the client has its answer; if not, it has noted the attempt.
func (f *forwarding) try(ctx context.Context, d Decision) (answered bool) {
	allowed := f.policy.Routing.InFlight
	if f.stream || f.protocol != "" {
		allowed = 0
	}
	began := f.h.now()
	name := ""
	if u, ok := f.h.user(ctx); ok {
		name = u.GetName()
	}
	// Streams hold no place, and with no bound nobody does: a hundred of exec that wait for a slow node keep no user's GET away.
	inside := allowed > 0
	if inside && !f.h.inFlight.enter(d.Peer, name, allowed) {
		f.failed(ctx, AttemptResult{Peer: d.Peer, Outcome: NotDelivered, Err: errBusy, Busy: true}, "too many requests to it are in flight")
		return false
	}
	leave := func() {
		if inside {
			inside = false
			f.h.inFlight.leave(d.Peer, name)
		}
	}
	defer leave()

	ctx, span, header := f.h.tracer.attempt(ctx, d.Peer, len(f.tried)+1, f.header)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := &attemptTrace{w: f.w}
	out, err := f.outgoing(httptrace.WithClientTrace(ctx, watch.hooks()), d.Address, header)
	if err != nil {
		endAttempt(span, AttemptResult{}, err.Error())
		f.fail(err)
		return true
	}
	if out.Body != nil {
		defer out.Body.Close()
	}
	answer, err := f.roundTrip(out, cancel)
	leave() // a client that reads slowly holds no place
	watch.end()
	result := AttemptResult{Peer: d.Peer, Duration: f.h.now().Sub(began)}
	if err == nil {
		defer answer.Body.Close()
		result.Answered, result.Code = true, answer.StatusCode
		if f.policy.Routing.RefuseAtHop && answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get(RefusedHeader) != "" {
			result.Answered, result.Outcome, result.Err = false, Refused, errRefused
		}
		f.h.store.Observe(PeerAnswered{ID: d.Peer})
	}
	switch {
	case result.Answered:
		endAttempt(span, result, "")
		f.h.observer.Attempted(f.r.Context(), f.request, result)
		f.answer(answer)
		return true
	case result.Outcome == Refused && err == nil:
		endAttempt(span, result, errRefused.Error())
		f.failed(ctx, result, "it does not serve this")
		return false
	}
	result.Err = err
	result.Outcome = outcomeOf(err, watch)
	trouble := troubleOf(err, result.Outcome)
	endAttempt(span, result, trouble)
	if f.clientFailed(result) {
		return true
	}
	f.reportFailure(d)
	f.failed(ctx, result, trouble)
	return false
}

// failed notes an attempt that brought no answer.
func (f *forwarding) failed(ctx context.Context, result AttemptResult, trouble string) {
	f.tried = append(f.tried, Attempt{Peer: result.Peer, Outcome: result.Outcome, Trouble: trouble})
	f.last = result.Err
	f.h.observer.Attempted(f.r.Context(), f.request, result)
	f.h.log.LogAttrs(ctx, slog.LevelWarn, "a peer did not answer", slog.String("peer", string(result.Peer)),
		slog.String("resource", f.request.Resource.String()), slog.String("outcome", result.Outcome.String()), slog.Any("err", result.Err))
}

// reportFailure says that a peer has failed. Whether it is avoided is the table's affair.
func (f *forwarding) reportFailure(d Decision) {
	now := f.h.now()
	before, _ := ejectedUntil(f.h.store.Table(), d.Peer)
	after, ok := ejectedUntil(f.h.store.Observe(PeerFailed{ID: d.Peer, At: now}), d.Peer)
	if ok && after.After(now) && !before.After(now) {
		f.h.observer.Ejected(f.r.Context(), d.Peer)
		f.h.log.LogAttrs(f.r.Context(), slog.LevelWarn, "a peer is avoided for a while", slog.String("peer", string(d.Peer)),
			slog.Duration("for", after.Sub(now)))
	}
}

func ejectedUntil(t *Table, id ServerID) (time.Time, bool) {
	i, ok := t.find(id)
	if !ok {
		return time.Time{}, false
	}
	return t.peers[i].ejected, true
}

// outgoing makes the request for a peer.
func (f *forwarding) outgoing(ctx context.Context, address string, header http.Header) (*http.Request, error) {
	out := f.r.WithContext(ctx)
	target := f.target
	target.Host = address
	out.URL = &target
	out.Host = "" // the peer's address; its certificate is another matter
	out.Header = header
	out.RequestURI = ""
	out.Close = false
	out.TransferEncoding = nil
	out.Trailer = nil // RFC 9110, 6.5.1: may be dropped; no Kubernetes client sends any
	out.Body, out.GetBody, out.ContentLength = nil, nil, 0
	if f.body == nil {
		return out, nil
	}
	reader, err := f.body.open()
	if err != nil {
		return nil, fmt.Errorf("send the request's body to a peer: %w", err)
	}
	out.Body, out.ContentLength = reader, f.r.ContentLength
	// With this a transport can send the request again on a new connection when the old one was closed before it took it.
	out.GetBody = func() (io.ReadCloser, error) { return f.body.open() }
	return out, nil
}

// roundTrip waits for the headers of the answer, not longer than the policy says.
//
// A watch is bound as well: its headers come at once, and a peer that does not even send those is better left for another. What may
// legitimately take longer is not: connections through the peer to a node or pod, and logs that are followed.
func (f *forwarding) roundTrip(out *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
	transport := f.h.transport
	if f.protocol != "" {
		transport = f.h.upgradeTransport
	}
	limit := f.policy.Routing.AttemptTimeout
	if !f.request.Repeatable {
		limit = f.policy.Routing.WriteTimeout
	}
	if limit <= 0 || f.protocol != "" || f.stream && f.info.Verb != "watch" {
		return transport.RoundTrip(out)
	}
	d := &deadline{limit: limit, now: f.h.now, afterFunc: f.h.afterFunc, body: f.body, cancel: cancel}
	d.begin()
	answer, err := transport.RoundTrip(out)
	if d.end() {
		return answer, err
	}
	if err == nil { // the time was over just when the headers came: the body is cut off already
		answer.Body.Close()
	}
	return nil, context.Cause(out.Context())
}

// clientFailed deals with attempts that failed because of the client, and reports whether this was one: then no peer is to blame and no
// other is tried.
func (f *forwarding) clientFailed(result AttemptResult) bool {
	gone, body := f.r.Context().Err(), f.body.clientErr()
	if gone == nil && body == nil {
		return false
	}
	f.h.observer.Attempted(f.r.Context(), f.request, result)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(gone, context.DeadlineExceeded):
		f.fail(apierrors.NewTimeoutError("the time for this request was over before a peer answered", 0))
	case gone != nil:
		panic(http.ErrAbortHandler) // nobody is there to read an answer
	case errors.As(body, &tooLarge):
		f.fail(apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes", tooLarge.Limit)))
	default:
		f.fail(apierrors.NewBadRequest("the request's body could not be read"))
	}
	return true
}

// attemptTrace sees how far a request got, and passes informational answers on to the client (RFC 9110, 15.2), save for
// 100, which the server sends by itself when the body is read.
type attemptTrace struct {
	mu    sync.Mutex
	state delivery
	conn  net.Conn // that it was given
	w     http.ResponseWriter
	ended bool
	trace httptrace.ClientTrace
}

type delivery int

const (
	untraced   delivery = iota // the transport says nothing
	connecting                 // it has no connection for the request yet
	connected
	written
)

func (a *attemptTrace) hooks() *httptrace.ClientTrace {
	a.trace = httptrace.ClientTrace{
		GetConn: func(string) { a.set(connecting) },
		GotConn: func(i httptrace.GotConnInfo) { a.got(i.Conn) },
		// From here on the peer may have it. A transport may go on to another connection all the same (net/http does for a GET that
		// connects to something), and not find one: that does not make the request undelivered.
		WroteHeaders: func() { a.set(written) },
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.ended || code == http.StatusContinue {
				return nil
			}
			own := maps.Clone(a.w.Header())
			copyAnswerHeader(a.w.Header(), http.Header(header))
			a.w.WriteHeader(code)
			clear(a.w.Header())
			maps.Copy(a.w.Header(), own)
			return nil
		},
	}
	return &a.trace
}

func (a *attemptTrace) set(s delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != written || s == connecting && isHTTP2(a.conn) {
		a.state = s
	}
}

func (a *attemptTrace) got(c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != written {
		a.state, a.conn = connected, c
	}
}

// isHTTP2 reports whether a connection is of HTTP/2, where a transport goes on to another connection only with what the peer says that it
// has not looked at: a stream refused, or one after the last of a GOAWAY (RFC 9113, 6.8 and 8.7; golang.org/x/net/http2, canRetryError).
func isHTTP2(c net.Conn) bool {
	secured, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	return ok && secured.ConnectionState().NegotiatedProtocol == "h2"
}

// end stops all passing on: the transport has returned, and the writer belongs to the handler again.
func (a *attemptTrace) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

func (a *attemptTrace) delivery() delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}
