package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/apis/audit"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/internal/replay"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// hopHeaders are for peers only: the sidecar does not send them to the local kube-apiserver.
var hopHeaders = []string{folded(proxy.HopHeader), folded(proxy.HopHeaderPublished), folded(proxy.RefusedHeader)}

// local is the local kube-apiserver as a handler: a reverse proxy. It asserts the user of the
// request's context with the front-proxy certificate, or passes the caller's own credentials on.
type local struct {
	upstream  *url.URL
	transport http.RoundTripper
	names     *headerNames
	// aggregated reports whether an aggregated API server answers requests at a path. nil: none
	// does.
	aggregated func(path string) bool
	log        *slog.Logger
	proxy      *httputil.ReverseProxy
	failing    atomic.Bool // the last request got no answer
	bodies     *replay.Budget
	alone      *bounded
}

func newLocal(upstream *url.URL, rt http.RoundTripper, names *headerNames, log *slog.Logger) *local {
	alone := &bounded{RoundTripper: rt}
	rt = boundHeaders{alone}
	l := &local{upstream: upstream, transport: rt, names: names, log: log, bodies: replay.NewBudget(), alone: alone}
	l.proxy = &httputil.ReverseProxy{
		Rewrite:      func(p *httputil.ProxyRequest) { l.direct(p.Out, p.In) },
		Transport:    rt,
		BufferPool:   &copyBuffers{pool: sync.Pool{New: func() any { return new([copyBufferSize]byte) }}},
		ErrorHandler: l.unavailable,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ModifyResponse: func(answer *http.Response) error {
			if l.failing.Load() && l.failing.Swap(false) {
				log.Info("the local kube-apiserver answers again")
			}
			if body, ok := answer.Request.Context().Value(bodyKey{}).(*replay.Body); ok {
				body.Answered()
			}
			return nil
		},
	}
	return l
}

func (l *local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := callerFrom(r.Context())
	body := replay.New(r, replay.Options{Bound: replay.Bound, Budget: l.bodies, Caller: c.seat(), Now: time.Now})
	if body == nil {
		l.send(w, r)
		return
	}
	defer body.Close()
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
	if wire.ReadFirst(r, c.apart(), longRunning(r)) && body.Prefetch() != nil {
		l.unavailable(w, r, body.ClientErr())
		return
	}
	if err := body.Attach(r); err != nil {
		l.unavailable(w, r, err)
		return
	}
	l.send(w, r)
}

func (l *local) send(w http.ResponseWriter, r *http.Request) {
	if needsOwnConnection(r) && !longRunning(r) {
		w = withoutContinue{w}
	}
	l.proxy.ServeHTTP(w, r)
}

// withoutContinue does not pass the local server's 100 on. If the client expects a 100, net/http
// sends one when the body is read.
type withoutContinue struct{ http.ResponseWriter }

func (w withoutContinue) WriteHeader(code int) {
	if code != http.StatusContinue {
		w.ResponseWriter.WriteHeader(code)
	}
}

// Unwrap is for [http.ResponseController].
func (w withoutContinue) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// bodyKey is the context key of the request's *replay.Body.
type bodyKey struct{}

// direct changes out, the request for the local server, which is a copy of the caller's request in.
// Impersonation headers pass, because the local server judges them. The path and the query pass
// byte for byte. direct adds the caller's address to X-Forwarded-For, from which the audit log
// takes source addresses.
func (l *local) direct(out, in *http.Request) {
	out.URL.Scheme, out.URL.Host = l.upstream.Scheme, l.upstream.Host
	out.URL.Opaque = ""                // net/http would send it ("x:https://host/path") instead of the path
	out.URL.RawQuery = in.URL.RawQuery // Rewrite drops parameters that it cannot parse; the local server must get and refuse them
	out.Host = in.Host
	out.Header.Set("X-Forwarded-For", forwardedFor(in))
	if id := in.Header.Get(audit.HeaderAuditID); id != "" {
		out.Header.Set(audit.HeaderAuditID, id) // even if the Connection header names it
	}
	wire.KeepFromRepeating(out.Header) // needed because the transport can send a short body again
	dropHop(out.Header)
	c := callerFrom(in.Context())
	c.cleaned.Store(l.names.drop(out.Header))
	c.aggregated.Store(l.aggregated != nil && l.aggregated(out.URL.Path))
	if !c.own() {
		out.Header.Del("Authorization")
		l.names.own.set(out, c.asserted)
		return
	}
	// Keep these headers even if the Connection header names them. Without them the request would
	// be anonymous, and the server would end the connection after it.
	for _, name := range [...]string{"Authorization", "Sec-Websocket-Protocol"} {
		if values, ok := in.Header[name]; ok {
			out.Header[name] = values
		}
	}
}

// asCaller sends requests to the local server. It uses asserted for requests whose user the sidecar
// asserts. It uses plain, which has no client certificate, for requests with credentials of their
// own. The reason is a server that accepts the front-proxy certificate as a client certificate too:
// it checks certificates first (pkg/kubeapiserver/authenticator/config.go), and would treat such a
// request as the sidecar's own.
type asCaller struct {
	asserted http.RoundTripper
	plain    http.RoundTripper
}

func (t asCaller) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callerFrom(r.Context())
	if !c.own() {
		return t.asserted.RoundTrip(r)
	}
	answer, err := t.plain.RoundTrip(r)
	if err == nil {
		c.answered(r, answer.StatusCode)
	}
	return answer, err
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

// boundHeaders refuses requests with more headers than the local server accepts, because they would
// break the HTTP/2 connection that all requests share. It also refuses requests that no transport
// can send.
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
	body, _ := r.Context().Value(bodyKey{}).(*replay.Body)
	switch gone := r.Context().Err(); {
	case errors.Is(gone, context.DeadlineExceeded), errors.Is(body.ClientErr(), os.ErrDeadlineExceeded):
		answerError(w, r, errRequestTime)
		return
	case gone != nil, errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // the client is gone
	}
	var refused *apierrors.StatusError
	if errors.As(err, &refused) {
		answerError(w, r, refused)
		return
	}
	if body.ClientErr() != nil {
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
