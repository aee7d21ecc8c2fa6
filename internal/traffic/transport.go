package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
)

// auditIDHeader makes the client's ID the server's audit ID (k8s.io/api audit/v1, HeaderAuditID).
// Peer proxies forward it, so that one ID joins the audit logs of all servers.
const auditIDHeader = "Audit-ID"

// recordingTransport turns each attempt of client-go into one operation.
//
// client-go would retry after 429 and 5xx with Retry-After, and after broken connections
// (k8s.io/client-go/rest/with_retry.go). So the transport records Retry-After and removes it from
// the response, and returns errors as [noResponse], which client-go does not recognise.
type recordingTransport struct {
	next   http.RoundTripper
	http1  http.RoundTripper // for requests by HTTP/1.1, see workload.Request.HTTP1
	server string
	user   string
	// impersonator is the user who sends the requests as user, or empty.
	impersonator string
	recorder     Recorder
	gate         *gate
	// documents has the documents of all clients of the run: history.Document by hash.
	documents *sync.Map
	mu        sync.Mutex
	session   workload.Session
}

func (t *recordingTransport) resolve(r workload.Request) workload.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session.Resolve(r)
}

// finish records an operation that has ended, and stores in its attempt the request that the client
// sends next.
func (t *recordingTransport) finish(ctx context.Context, op *history.Operation, body []byte) {
	a := attemptOf(ctx)
	t.mu.Lock()
	a.next, a.more = t.session.Answered(&a.request, op, body, func(hash string) (history.Document, bool) {
		doc, ok := t.documents.Load(hash)
		if !ok {
			return history.Document{}, false
		}
		return doc.(history.Document), true
	})
	t.mu.Unlock()
	t.recorder.Operation(*op)
}

// WrappedRoundTripper lets client-go find the wrapped http.Transport.
func (t *recordingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper]. It reads a body to its end, so that Operation.End is
// the time when the response was complete. Only the body of a watch is streamed; a watch is
// recorded at its end.
func (t *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context()) // a RoundTripper must not modify its request
	op := t.begin(req)
	req.Header.Set(auditIDHeader, op.ID)
	for name, values := range attemptOf(req.Context()).request.ForgedHeader() {
		req.Header[name] = append(req.Header[name], values...)
	}
	op.Rerouted = proxy.SaysRerouted(req.Header)
	answered, held, err := t.admit(&op, req.Context())
	if err != nil {
		return nil, err
	}
	asked := &attemptOf(req.Context()).request
	next := t.next
	if asked.HTTP1 && t.http1 != nil {
		next = t.http1
	}
	resp, err := next.RoundTrip(req)
	answered(err)
	if err != nil {
		return nil, t.failed(&op, req.Context(), held, err)
	}
	op.Status = resp.StatusCode
	op.RetryAfter = resp.Header.Get("Retry-After")
	op.ETag = resp.Header.Get("ETag")
	resp.Header.Del("Retry-After")

	if op.Verb == "watch" && resp.StatusCode == http.StatusOK {
		op.Body = history.BodyEvents
		resp.Body = &watchBody{
			body: resp.Body, op: op, transport: t, ctx: req.Context(),
		}
		return resp, nil
	}
	if asked.Slow {
		resp.Body = &slowBody{resp.Body, req.Context()}
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, t.failed(&op, req.Context(), held, err)
	}
	op.End = t.recorder.Now()
	t.readBody(&op, resp.Header.Get("Content-Type"), body)
	op.Content = answer.ContentOf(resp.Header.Get("Content-Type"), body)
	if asked.Compare != "" && op.Status == http.StatusOK && op.Body == history.BodyObject {
		op.Object, op.Headers = answer.Object(body, op.Verb), answer.Headers(resp.Header)
	}
	t.finish(req.Context(), &op, body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// begin starts the operation of a request.
func (t *recordingTransport) begin(req *http.Request) history.Operation {
	a := attemptOf(req.Context())
	op := workload.Describe(req)
	op.ID, op.Server, op.User, op.Impersonator, op.Client, op.Purpose = uuid.NewString(), t.server, t.user, t.impersonator, a.request.Sender(),
		a.purpose
	return op
}

// admit holds a request back while other requests test whether the server answers (see [gate]). The
// operation starts after that. If the request times out meanwhile, it is recorded as never sent.
// held is the age of the attempt when the request could be sent.
func (t *recordingTransport) admit(op *history.Operation, ctx context.Context) (answered func(error), held time.Duration, err error) {
	op.Start = t.recorder.Now()
	answered, err = t.gate.pass(ctx)
	op.Start = t.recorder.Now()
	if err != nil {
		return nil, 0, t.lost(ctx, op, history.FailureCanceled, err)
	}
	return answered, time.Since(attemptOf(ctx).began), nil
}

// patience is the maximum age of an attempt at which a request still has enough time for its
// answer.
var patience = workload.Timeout - history.DefaultBounds.Unavailable

// failed records an operation without a complete response, and returns the error for client-go.
// held is as in admit. A request may run out of time because it was held back, or because it came
// after other requests of its attempt (the pages of a list). This says nothing about the server.
func (t *recordingTransport) failed(op *history.Operation, ctx context.Context, held time.Duration, err error) error {
	failure := classifyFailure(ctx, err)
	if held > patience && errors.Is(context.Cause(ctx), errAttemptTimeout) {
		failure = history.FailureCanceled
	}
	return t.lost(ctx, op, failure, err)
}

func (t *recordingTransport) lost(ctx context.Context, op *history.Operation, why history.Failure, err error) error {
	op.End = t.recorder.Now()
	op.Failure, op.Error = why, err.Error()
	t.finish(ctx, op, nil)
	return &noResponse{server: t.server, operation: op.ID, failure: op.Failure}
}

// noResponse is the error for a broken connection that client-go gets. It neither wraps nor quotes
// the cause, because client-go detects retryable errors by type and text. The cause is in the
// operation.
type noResponse struct {
	server, operation string
	failure           history.Failure
}

func (e *noResponse) Error() string {
	return fmt.Sprintf("no complete response from server %q to operation %s: %s", e.server, e.operation, e.failure)
}

// newline ends a watch event, because clients watch in JSON only.
var newline = []byte{'\n'}

// watchBody records its operation once: at the end of the stream, or when it is closed before. It
// counts the events in the bytes. The operation is recorded at the last byte, and then the client
// has not decoded the last event yet.
type watchBody struct {
	body      io.ReadCloser
	transport *recordingTransport
	ctx       context.Context
	events    atomic.Int64
	op        history.Operation
	once      sync.Once
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.events.Add(int64(bytes.Count(p[:n], newline)))
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.ended(nil)
		return n, io.EOF
	default:
		b.ended(err)
		return n, &noResponse{server: b.transport.server, operation: b.op.ID, failure: b.op.Failure}
	}
}

func (b *watchBody) Close() error {
	// Closing an unfinished stream says nothing about the server.
	b.ended(context.Canceled)
	return b.body.Close()
}

func (b *watchBody) ended(err error) {
	b.once.Do(func() {
		b.op.End = b.transport.recorder.Now()
		b.op.Events = int(b.events.Load())
		if err != nil {
			b.op.Failure, b.op.Error = classifyFailure(b.ctx, err), err.Error()
		}
		b.transport.recorder.Operation(b.op)
	})
}
