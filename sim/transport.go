package sim

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/workload"
)

// transport is the transport of one server to its peers.
type transport struct{ *server }

// RoundTrip sends a request that the handler of this server forwards. It waits in the task of the
// original request.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	parent := r.Context().Value(exchangeKey{}).(*exchange)
	trace := httptrace.ContextClientTrace(r.Context())
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
	for t.seeking { // as on real processes: every request to a peer hangs until etcd is back
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		parent.task.Wait()
	}
	target, ok := t.s.byAddress[r.URL.Host]
	if !ok {
		return nil, errRefused
	}
	var payload []byte
	if r.Body != nil {
		var err error
		if payload, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	x := t.s.send(t.s.link(t.index, target), parent.op, parent, r, payload, parent)
	for told := false; ; {
		if x.connected && !told && trace != nil {
			told = true
			trace.GotConn(httptrace.GotConnInfo{})
			trace.WroteHeaders()
		}
		if x.status != 0 {
			var body io.ReadCloser = &answerBody{x: x, ctx: r.Context(), waiting: parent}
			if x.status == http.StatusSwitchingProtocols {
				body = socketBody{body.(*answerBody)}
			}
			return &http.Response{
				StatusCode: x.status, Header: x.header, ContentLength: contentLength(x.header), Body: body, ProtoMajor: 2, Request: r,
			}, nil
		}
		if x.err != nil {
			return nil, x.err
		}
		if err := r.Context().Err(); err != nil {
			x.giveUp()
			return nil, err
		}
		parent.task.Wait()
	}
}

// answerBody is the body of an answer. It can be read while the answer arrives.
type answerBody struct {
	x       *exchange
	ctx     context.Context // of the request
	waiting *exchange       // the exchange in whose task the body is read
}

func (b *answerBody) Read(p []byte) (int, error) {
	for x := b.x; ; {
		switch {
		case x.read < len(x.body):
			n := copy(p, x.body[x.read:])
			x.read += n
			return n, nil
		case x.ended:
			return 0, io.EOF
		case x.err != nil:
			return 0, x.err
		case b.ctx.Err() != nil:
			x.giveUp()
			return 0, b.ctx.Err()
		}
		b.waiting.task.Wait()
	}
}

// Close gives up the rest of the body.
func (b *answerBody) Close() error {
	if b.x.ended {
		b.x.drop()
	} else {
		b.x.giveUp()
	}
	return nil
}

// values returns the parent context of a request at its target. It has the values that the API
// machinery's own filters would have added: the request info and the user.
func (s *Simulator) values(x *exchange) context.Context {
	values := context.Background()
	if x.request.Method == x.op.template.request.Method && x.request.URL.Path == x.op.template.url.Path &&
		x.request.URL.RawQuery == x.op.template.url.RawQuery {
		values = x.op.template.values
	} else if info, err := workload.RequestInfo.NewRequestInfo(x.request); err == nil {
		values = apirequest.WithRequestInfo(values, info)
	}
	return apirequest.WithUser(values, s.user(x.seenAs()))
}

// requestContext is the context of a request at its server. It starts no goroutine: contexts
// derived from it are cancelled through AfterFunc, in the simulator's goroutine. Package context
// finds AfterFunc only on the outermost context, so requestContext wraps the context with the
// values, and not the reverse.
type requestContext struct {
	x      *exchange
	values context.Context // with the request info and the user
	err    error
	after  []*func()
}

// exchangeKey is the context key of the exchange.
type exchangeKey struct{}

var (
	openDone   = make(chan struct{})
	closedDone = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

func (c *requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done returns a channel that is closed if the request is over. Callers must poll it and never wait
// for it.
func (c *requestContext) Done() <-chan struct{} {
	if c.err != nil {
		return closedDone
	}
	return openDone
}

func (c *requestContext) Err() error { return c.err }

func (c *requestContext) Value(key any) any {
	if key == (exchangeKey{}) {
		return c.x
	}
	return c.values.Value(key)
}

// AfterFunc is the method that package context uses, if it exists, instead of starting a goroutine.
func (c *requestContext) AfterFunc(f func()) (stop func() bool) {
	c.after = append(c.after, &f)
	return func() bool {
		pending := f != nil
		f = nil
		return pending
	}
}

func (c *requestContext) cancel() {
	c.err = context.Canceled
	after := c.after
	c.after = nil
	for _, f := range after {
		if do := *f; do != nil {
			*f = nil
			do()
		}
	}
}
