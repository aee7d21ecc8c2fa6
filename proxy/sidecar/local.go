package sidecar

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
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

// hopHeaders are for peers only: the local kube-apiserver does not get them.
var hopHeaders = []string{folded(proxy.HopHeader), folded(proxy.HopHeaderPublished), folded(proxy.RefusedHeader)}

// local is the local kube-apiserver as a handler: a reverse proxy that asserts the user of the
// request's context with the front-proxy certificate.
type local struct {
	upstream  *url.URL
	transport http.RoundTripper
	names     *headerNames
	log       *slog.Logger
	proxy     *httputil.ReverseProxy
	failing   atomic.Bool // the last request got no answer
}

func newLocal(upstream *url.URL, rt http.RoundTripper, names *headerNames, log *slog.Logger) *local {
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
			panic(http.ErrAbortHandler) // the client did not send the whole body
		}
	} else if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
		body := &clientBody{ReadCloser: r.Body}
		r = r.WithContext(context.WithValue(r.Context(), clientBodyKey{}, body))
		r.Body = body
	}
	l.proxy.ServeHTTP(w, r)
}

// replayBound is the length in bytes up to which a body is read before it is sent on.
const replayBound = 64 << 10

// replayable gives a request a body that the transport can send again if a connection is closed (a
// restart, GOAWAY) before the server looked at the request. It returns nil if the body cannot be
// read.
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

// clientBody remembers whether reading from the client failed.
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

// direct turns in, a caller's request, into out, the request for the local server. Impersonation
// headers pass, because the local server judges them; the path and the query pass byte for byte. It
// adds the caller's address to X-Forwarded-For, from which the audit log takes source addresses.
func (l *local) direct(out, in *http.Request) {
	out.URL.Scheme, out.URL.Host = l.upstream.Scheme, l.upstream.Host
	out.URL.Opaque = ""                // net/http would send it ("x:https://host/path") instead of the path
	out.URL.RawQuery = in.URL.RawQuery // Rewrite drops what it cannot parse; the local server refuses it
	out.Host = in.Host
	out.Header.Set("X-Forwarded-For", forwardedFor(in))
	if id := in.Header.Get(audit.HeaderAuditID); id != "" {
		out.Header.Set(audit.HeaderAuditID, id) // even if the Connection header names it
	}
	out.Header.Del("Authorization")
	wire.KeepFromRepeating(out.Header) // needed because a short body can be sent again
	dropHop(out.Header)
	l.names.drop(out.Header)
	if u, ok := apirequest.UserFrom(in.Context()); ok { // always, behind authentication
		l.names.own.set(out, u)
	}
}

// forwardedFor returns X-Forwarded-For with the caller's address appended.
func forwardedFor(r *http.Request) string {
	said := slices.Clone(r.Header["X-Forwarded-For"])
	if caller, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		said = append(said, caller)
	}
	return strings.Join(said, ", ")
}

func dropHop(h http.Header) {
	maps.DeleteFunc(h, func(key string, _ []string) bool { return slices.Contains(hopHeaders, folded(key)) })
}

// boundHeaders refuses requests with more headers than the local server takes, which would break the
// HTTP/2 connection that all requests share, and requests that no transport sends.
type boundHeaders struct{ http.RoundTripper }

func (t boundHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	err := wire.CheckSendable(r)
	if err == nil {
		err = wire.CheckHeaderSize(r.URL, r.Header, r.Trailer)
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must
		}
		return nil, err
	}
	return t.RoundTripper.RoundTrip(r)
}

// unavailable answers a request that the local server did not answer.
func (l *local) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the client is gone
	}
	var refused *apierrors.StatusError
	if errors.As(err, &refused) {
		answerError(w, r, refused)
		return
	}
	if body, ok := r.Context().Value(clientBodyKey{}).(*clientBody); ok && body.failed.Load() {
		answerError(w, r, apierrors.NewBadRequest("the request's body could not be read")) // not the local server's fault
		return
	}
	if errors.Is(err, errOwnCredentials) { // logged by ownCredentials
		w.Header().Set("Retry-After", "1") // safe: the request was not carried out
		answerError(w, r, apierrors.NewServiceUnavailable("the local kube-apiserver does not accept the proxy's credentials"))
		return
	}
	level := slog.LevelDebug // warn only once: the access log and the metrics count
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
