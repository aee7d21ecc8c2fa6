package sidecar

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/apis/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// The headers that are a matter between peers: the local kube-apiserver is told nothing of hops.
var hopHeaders = []string{folded(proxy.HopHeader), folded(proxy.HopHeaderPublished), folded(proxy.RefusedHeader)}

// local is the local kube-apiserver as a handler: a reverse proxy that asserts the user in the request's context with the front-proxy
// certificate.
type local struct {
	upstream  *url.URL
	transport http.RoundTripper
	names     identityNames
	log       *slog.Logger
	proxy     *httputil.ReverseProxy
	failing   atomic.Bool // the last request was not answered
}

func newLocal(upstream *url.URL, rt http.RoundTripper, names identityNames, log *slog.Logger) *local {
	rt = boundHeaders{rt}
	l := &local{upstream: upstream, transport: rt, names: names, log: log}
	l.proxy = &httputil.ReverseProxy{
		Rewrite:      func(p *httputil.ProxyRequest) { l.direct(p.Out, p.In) },
		Transport:    rt,
		BufferPool:   &copyBuffers{pool: sync.Pool{New: func() any { return new([copyBufferSize]byte) }}},
		ErrorHandler: l.unavailable,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ModifyResponse: func(*http.Response) error {
			if l.failing.Load() && l.failing.Swap(false) {
				log.Info("the local kube-apiserver answers again")
			}
			return nil
		},
	}
	return l
}

func (l *local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > 0 && r.ContentLength <= replayBound {
		if r = replayable(r); r == nil {
			panic(http.ErrAbortHandler) // the client broke off before it had sent what it announced
		}
	} else if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
		body := &clientBody{ReadCloser: r.Body}
		r = r.WithContext(context.WithValue(r.Context(), clientBodyKey{}, body))
		r.Body = body
	}
	l.proxy.ServeHTTP(w, r)
}

// replayBound is the length, in bytes, to which a body is read before it is sent on.
const replayBound = 64 << 10

// replayable gives a request a body that can be sent again, which the transport does when a connection turns out to be closed or closing
// (a restart, GOAWAY) before the request was looked at. It returns nil if the body cannot be read.
func replayable(r *http.Request) *http.Request {
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil
	}
	again := *r
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	again.Body = io.NopCloser(bytes.NewReader(body))
	return &again
}

// clientBody remembers whether it could be read from the client.
type clientBody struct {
	io.ReadCloser
	failed atomic.Bool
}

type clientBodyKey struct{}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.failed.Store(true)
	}
	return n, err
}

// direct makes of in, a caller's request, what the local server is sent. Impersonation headers pass, because the local server judges them; the
// path and the query pass byte for byte; the caller's address is added to X-Forwarded-For, which is where the audit log takes source
// addresses from.
func (l *local) direct(out, in *http.Request) {
	out.URL.Scheme, out.URL.Host = l.upstream.Scheme, l.upstream.Host
	out.URL.Opaque = ""                // of a target such as "x:https://host/path", which net/http sends in place of the path that everything was decided by
	out.URL.RawQuery = in.URL.RawQuery // Rewrite drops what it cannot parse: that is for the local server to refuse
	out.Host = in.Host
	out.Header.Set("X-Forwarded-For", forwardedFor(in))
	if id := in.Header.Get(audit.HeaderAuditID); id != "" {
		out.Header.Set(audit.HeaderAuditID, id) // whatever the Connection header names
	}
	out.Header.Del("Authorization")
	wire.KeepFromRepeating(out.Header) // a short body can be sent again: see replayable
	dropHop(out.Header)
	u, ok := apirequest.UserFrom(in.Context())
	if !ok {
		// Authentication stands before this in every chain. Were it left out by mistake, this must not become somebody.
		l.names.drop(out.Header)
		return
	}
	l.names.set(out, u)
}

// forwardedFor is what X-Forwarded-For says already, and the caller's address after it.
func forwardedFor(r *http.Request) string {
	said := slices.Clone(r.Header["X-Forwarded-For"])
	if caller, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		said = append(said, caller)
	}
	return strings.Join(said, ", ")
}

func dropHop(h http.Header) {
	for key := range h {
		if slices.Contains(hopHeaders, folded(key)) {
			delete(h, key)
		}
	}
}

// boundHeaders sends no request on that has more headers than the local server takes: that would break the connection to it, which all share.
type boundHeaders struct{ http.RoundTripper }

func (t boundHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := wire.CheckHeaderSize(r.URL, r.Header, r.Trailer); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as every RoundTripper does; it was not begun
		}
		return nil, err
	}
	return t.RoundTripper.RoundTrip(r)
}

// unavailable answers for a local server that did not, or was not asked.
func (l *local) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // nobody is there to be answered
	}
	var refused *apierrors.StatusError
	if errors.As(err, &refused) {
		answerError(w, r, refused)
		return
	}
	if body, ok := r.Context().Value(clientBodyKey{}).(*clientBody); ok && body.failed.Load() {
		answerError(w, r, apierrors.NewBadRequest("the request's body could not be read")) // no fault of the local server
		return
	}
	level := slog.LevelDebug // said once: the access log and the metrics count
	if !l.failing.Swap(true) {
		level = slog.LevelWarn
	}
	l.log.Log(r.Context(), level, "the local kube-apiserver did not answer", "method", r.Method, "path", r.URL.Path, "error", err)
	var dial *net.OpError
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if safe || errors.As(err, &dial) && dial.Op == "dial" {
		w.Header().Set("Retry-After", "1")
	}
	answerError(w, r, apierrors.NewServiceUnavailable("the local kube-apiserver did not answer"))
}

const copyBufferSize = 32 << 10

// copyBuffers implements [httputil.BufferPool].
type copyBuffers struct{ pool sync.Pool }

func (b *copyBuffers) Get() []byte { return b.pool.Get().(*[copyBufferSize]byte)[:] }

func (b *copyBuffers) Put(buffer []byte) {
	if len(buffer) == copyBufferSize {
		b.pool.Put((*[copyBufferSize]byte)(buffer))
	}
}
