package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

var (
	errRefused      = errors.New("it does not serve this")
	errPutOff       = errors.New("it says that it cannot serve this now")
	errUnauthorized = errors.New("the peer answered 401: it does not accept this server's front-proxy certificate")
)

// try makes one attempt and reports whether the client has its answer.
func (f *forwarding) try(d Decision) (answered bool) {
	ctx, cancel := context.WithCancel(f.r.Context())
	defer cancel()
	watch := &attemptTrace{w: f.w}
	defer watch.end()
	out, err := f.outgoing(httptrace.WithClientTrace(ctx, watch.hooks()), d.Address)
	if err != nil {
		f.fail(err)
		return true
	}
	if out.Body != nil {
		defer out.Body.Close()
	}
	answer, err := f.h.config.Transport.RoundTrip(out)
	watch.end()
	result := AttemptResult{Peer: d.Peer}
	if err != nil {
		result.Err, result.Outcome = err, outcomeOf(err, watch)
		trouble := troubleOf(err, result.Outcome)
		if f.clientFailed() {
			f.h.observer.Attempted(f.r.Context(), f.request, result)
			f.blameClient()
			return true
		}
		if watch.tried(err) {
			f.reportFailure(d)
		}
		f.failed(result, trouble)
		return false
	}
	defer answer.Body.Close()
	result.Code = answer.StatusCode
	if f.refusesUs(answer) {
		const trouble = "it does not accept this server's credentials"
		result.Outcome, result.Err, result.Unauthorized = Refused, errUnauthorized, true
		f.reportFailure(d)
		f.failed(result, trouble)
		return false
	}
	f.h.store.Observe(PeerAnswered{ID: d.Peer})
	if err := f.refusal(answer); err != nil {
		result.Outcome, result.Err = Refused, err
		f.failed(result, err.Error())
		return false
	}
	result.Answered = true
	f.h.observer.Attempted(f.r.Context(), f.request, result)
	f.body.Answered()
	f.answer(answer)
	return true
}

// refusesUs reports whether an answer says that the peer does not accept this server's credentials.
// The peer authenticates this server, and trusts this server about the client. So a 401 of the peer
// says nothing about the client's credentials, but a client that got the 401 would discard them.
// Only a 401 from a pod, service or node may be about the client.
func (f *forwarding) refusesUs(answer *http.Response) bool {
	return answer.StatusCode == http.StatusUnauthorized && !f.policy.Quirks.PlainErrors && !wire.ThroughProxy(f.info)
}

// refusal returns an error if an answer says that the peer has not carried the request out, and
// another peer may.
//
// A 503 with Retry-After is such an answer. A kube-apiserver that has begun to stop gives it to new
// requests on old connections (k8s.io/apiserver, pkg/server/filters, WithWaitGroup). A client of
// client-go sends a request with any method again after it. It says nothing of a peer if it is from
// a pod, service or node.
func (f *forwarding) refusal(answer *http.Response) error {
	switch {
	case f.policy.Routing.RefuseAtHop && f.refuses(answer):
		return errRefused
	case f.policy.Quirks.PlainErrors: // upstream passes each answer on
		return nil
	case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "" && !wire.ThroughProxy(f.info):
		return errPutOff
	}
	return f.refusesHeaders(answer)
}

// refuses reports whether an answer says that the peer does not serve the resource. A peer with
// this proxy says this with a 503 and RefusedHeader, another kube-apiserver with a 404 of certain
// forms. A 404 from a pod, service or node does not count, because it may have any form.
func (f *forwarding) refuses(answer *http.Response) bool {
	if answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get(RefusedHeader) != "" {
		return true
	}
	return f.request.Kind == KindResource && !wire.ThroughProxy(f.info) && lacksResource(answer)
}

// refusesHeaders returns an error if an answer says that the peer's HTTP server does not accept the
// headers. This server has accepted the client's, so those that it has added are too many: a header
// for each group of the user. An answer from behind the peer's filters has an Audit-ID.
func (f *forwarding) refusesHeaders(answer *http.Response) error {
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge || answer.Header.Get(auditinternal.HeaderAuditID) != "" {
		return nil
	}
	e := &headersError{of: wire.HeaderValues(f.header)}
	for name, values := range f.header { // in any order
		if f.h.identity.is(name) {
			e.user += len(values)
		}
	}
	return e
}

// headersError says that a peer does not accept so many headers.
type headersError struct{ of, user int } // header values, and those of them that name the user

func (e *headersError) Error() string {
	return fmt.Sprintf("it accepts no request with %d header values, of which %d are the user's name, groups and extra attributes", e.of, e.user)
}

// failed records an attempt that got no answer.
func (f *forwarding) failed(result AttemptResult, trouble string) {
	f.tried = append(f.tried, Attempt{Peer: result.Peer, Outcome: result.Outcome, Trouble: trouble})
	f.last, f.soon = result.Err, f.soon || errors.Is(result.Err, errRefused) || errors.Is(result.Err, errPutOff)
	f.h.observer.Attempted(f.r.Context(), f.request, result)
	if now := f.h.now().Unix(); f.h.warned.Swap(now) != now {
		f.h.log.LogAttrs(f.r.Context(), slog.LevelWarn, "a peer did not answer", slog.String("peer", string(result.Peer)),
			slog.String("resource", f.request.Resource.String()), slog.String("outcome", result.Outcome.String()), slog.Any("err", result.Err))
	}
}

// reportFailure reports to the table that a peer has failed. The policy says whether the table
// ejects the peer.
func (f *forwarding) reportFailure(d Decision) {
	now := f.h.now()
	before, _ := f.h.store.Table().Peer(d.Peer)
	after, _ := f.h.store.Observe(PeerFailed{ID: d.Peer, At: now}).Peer(d.Peer)
	if after.EjectedUntil.After(now) && !before.EjectedUntil.After(now) {
		f.h.observer.Ejected(f.r.Context(), d.Peer)
		f.h.log.LogAttrs(f.r.Context(), slog.LevelWarn, "a peer is avoided for a while", slog.String("peer", string(d.Peer)),
			slog.Duration("for", after.EjectedUntil.Sub(now)))
	}
}

// outgoing makes the request for a peer.
func (f *forwarding) outgoing(ctx context.Context, address string) (*http.Request, error) {
	out := f.r.WithContext(ctx)
	target := f.target
	target.Host = address
	out.URL = &target
	out.Host = "" // the transport takes it from the URL
	out.Header = f.header
	out.RequestURI = ""
	out.Close = false
	out.TransferEncoding = nil
	out.Trailer = nil // RFC 9110, 6.5.1, allows it; no Kubernetes client sends trailers
	if err := f.body.Attach(out); err != nil {
		return nil, fmt.Errorf("send the request's body to a peer: %w", err)
	}
	return out, nil
}

// clientFailed reports whether a request failed because of the client. Then no peer is to blame,
// and no other peer is tried.
func (f *forwarding) clientFailed() bool {
	return f.r.Context().Err() != nil || f.body.ClientErr() != nil
}

// blameClient answers a request that failed because of the client.
func (f *forwarding) blameClient() {
	gone, body := f.r.Context().Err(), f.body.ClientErr()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(gone, context.DeadlineExceeded), errors.Is(body, os.ErrDeadlineExceeded):
		f.fail(apierrors.NewTimeoutError("the time for this request was over before a peer answered", 0))
	case gone != nil:
		panic(http.ErrAbortHandler) // no client would read an answer
	case errors.As(body, &tooLarge):
		f.fail(apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes", tooLarge.Limit)))
	default:
		f.fail(apierrors.NewBadRequest("the request's body could not be read"))
	}
}
