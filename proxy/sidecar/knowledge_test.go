package sidecar

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestKubeconfigIsNotForCallers(t *testing.T) {
	a, r := one(t, func(w *world, o *Options) {
		o.Peers = nil
		o.Kubeconfig = writeFile(t, w.dir, "kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: proxy, user: {token: %s}}]
contexts: [{name: local, context: {cluster: local, user: proxy}}]
current-context: local
`, o.Upstream, base64.StdEncoding.EncodeToString(w.ca.pem), kubeconfigToken))
	})
	count := func() (n int) {
		a.set(func() { n = a.byToken })
		return n
	}
	await(t, "the lease was written", func() bool { return a.lease("skewproof-proxy-apiserver-a") != nil })
	a.set(func() { a.tokens["good"] = authenticationv1.UserInfo{Username: "bot"} })
	before := count()
	if got := r.get(r.client(nil, true), common, "Authorization", "Bearer good"); got.code != http.StatusOK {
		t.Fatalf("%d %s", got.code, got.body)
	}
	if s, _ := a.last(common); s.user != "bot" || s.header.Get("Authorization") != "Bearer good" {
		t.Errorf("the caller's request arrived as %+v", s)
	}
	// But the sidecar uses the kubeconfig's token to ask whether a caller may see the sidecar's own
	// pages.
	r.get(r.client(nil, true), debugPeersPath, "Authorization", "Bearer good")
	if before == 0 || count() == before {
		t.Errorf("%d requests with the kubeconfig's token before an access review and %d after", before, count())
	}
	// The client's connections end with the sidecar.
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	r.awaitNothingLeft()
}

func TestSpansComeFromTheGivenProvider(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	p := newPair(t, func(o *Options) { o.TracerProvider = provider })
	p.atA.get(p.user("prober", "system:monitoring"), "/apis/new.example/v2/novelties", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	found := 0
	for _, s := range spans.GetSpans() {
		if s.SpanContext.TraceID().String() == "0af7651916cd43dd8448eb211c80319c" {
			found++
		}
	}
	if found < 2 {
		t.Errorf("%d spans of the client's trace, want one for the request and one for the attempt", found)
	}
	if s, _ := p.b.last("/apis/new.example/v2/novelties"); !strings.HasPrefix(s.header.Get("Traceparent"), "00-0af7651916cd43dd8448eb211c80319c-") {
		t.Errorf("the far server got traceparent %q", s.header.Get("Traceparent"))
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestUnreachableCollectorDelaysNothing(t *testing.T) {
	t.Parallel()
	_, r := one(t, func(_ *world, o *Options) { o.TracingEndpoint, o.TracingRatePerMillion = "127.0.0.1:1", 1e6 })
	if got := r.get(r.user("alice"), common); got.code != http.StatusOK {
		t.Errorf("%d %s", got.code, got.body)
	}
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// The sidecar warns only if its server is ready and has no lease of the expected name.
func TestWarnsIfTheServerHasAnotherName(t *testing.T) {
	for name, test := range map[string]struct {
		lease string
		ready bool
		warns bool
	}{
		"same name":  {"apiserver-a", true, false},
		"other name": {"apiserver-b", true, true},
		"not ready":  {"apiserver-b", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				s := &sidecar{completed: &completed{server: "apiserver-a"}, probe: &probe{}, log: slog.New(slog.NewTextHandler(&logged, nil))}
				s.probe.ready.Store(test.ready)
				client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: test.lease}})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				s.checkIdentity(ctx, client)
				if n := strings.Count(logged.String(), "--server-id"); n != map[bool]int{true: 1}[test.warns] {
					t.Errorf("warned %d times: %s", n, &logged)
				}
			})
		})
	}
}

// fakeTransport is a function as a transport.
type fakeTransport func(*http.Request) (*http.Response, error)

func (f fakeTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The probe keeps the old knowledge until it is certain that there is a new process.
func TestOnlyANewProcessIsARestart(t *testing.T) {
	var (
		changes          int
		answer, toldErr  error
		code             = http.StatusOK
		told             = "one"
		fresh, wasAsked  = true, 0
		errSlow, refused = context.DeadlineExceeded, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	)
	p := &probe{
		server: "apiserver-a", log: slog.New(slog.DiscardHandler), changed: func() { changes++ }, upstream: mustURL(t, "https://127.0.0.1:1"),
		process: func(context.Context) (string, error) { wasAsked++; return told, toldErr },
	}
	p.client = &http.Client{Transport: fakeTransport(func(r *http.Request) (*http.Response, error) {
		if answer != nil {
			return nil, answer
		}
		gotConn(r.Context(), !fresh)
		fresh = false
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: http.NoBody, Request: r, Header: http.Header{}}, nil
	})}
	expect := func(step string, ready bool, incarnation string, ofChanges, asked int) {
		t.Helper()
		_ = p.once(t.Context()) // the result is checked below
		if p.Ready() != ready || p.Incarnation() != incarnation || changes != ofChanges || wasAsked != asked {
			t.Errorf("%s: ready %t, incarnation %q, %d changes, asked %d times; want %t, %q, %d, %d",
				step, p.Ready(), p.Incarnation(), changes, wasAsked, ready, incarnation, ofChanges, asked)
		}
	}
	expect("the first", true, "apiserver-a_one", 0, 1)
	expect("on the same connection", true, "apiserver-a_one", 0, 1)
	answer = errSlow
	expect("one miss", true, "apiserver-a_one", 0, 1)
	expect("two in a row", true, "apiserver-a_one", 0, 1)
	expect("three in a row", false, "apiserver-a_one", 0, 1)
	answer, fresh = nil, true
	expect("the same process on a new connection", true, "apiserver-a_one", 0, 2)
	toldErr, fresh = errSlow, true
	expect("a process that is too busy to answer", true, "apiserver-a_one", 0, 3)
	expect("is asked again, on the same connection", true, "apiserver-a_one", 0, 4)
	toldErr, told = nil, "two"
	expect("and turns out to be another", true, "apiserver-a_two", 1, 5)
	answer = refused
	expect("nobody listens", false, "apiserver-a_two", 1, 5)
	answer, code, fresh, told = nil, http.StatusInternalServerError, true, "three"
	expect("one that starts", false, "apiserver-a_two", 1, 5)
	code = http.StatusOK
	expect("and is ready, on the same connection", true, "apiserver-a_three", 2, 6)
}

// A process keeps its name, and a new process has another one.
func TestProcessName(t *testing.T) {
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA)
	metrics := http.StatusOK
	p := processOf{upstream: mustURL(t, a.server.URL), get: func(context.Context, string) (*http.Response, error) {
		body := "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds " + a.started + "\n" + strings.Repeat("x", 100000) + "\n"
		if metrics == 0 {
			return nil, context.DeadlineExceeded
		}
		if a.started == "" {
			body = "nothing\n"
		}
		return &http.Response{StatusCode: metrics, Status: http.StatusText(metrics), Body: io.NopCloser(strings.NewReader(body))}, nil
	}}
	name := func() string {
		t.Helper()
		n, err := p.name(t.Context())
		if err != nil || n == "" {
			t.Errorf("no name: %q, %v", n, err)
		}
		return n
	}
	first := name()
	if name() != first {
		t.Error("a kube-apiserver changed its name")
	}
	a.restart()
	if name() == first {
		t.Error("a kube-apiserver kept its name through a restart")
	}
	a.set(func() { a.process = nil })
	if name() != "1000.5" {
		t.Error("the name of a server that is not a kube-apiserver is not its start time")
	}
	for _, metrics = range []int{0, http.StatusInternalServerError, http.StatusTooManyRequests} {
		if n, err := p.name(t.Context()); err == nil {
			t.Errorf("code %d: the name is %q, want an error: asking again may help", metrics, n)
		}
	}
	for _, metrics = range []int{http.StatusForbidden, http.StatusOK} {
		a.started = ""
		if first, second := name(), name(); first == second {
			t.Errorf("code %d: an unidentified process keeps its name", metrics)
		}
	}
}

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// gotConn calls the GotConn hook, as a transport does.
func gotConn(ctx context.Context, reused bool) {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Reused: reused})
	}
}

func TestFailedHandshakesAreNotWarnings(t *testing.T) {
	var logged bytes.Buffer
	l := serverLog{slog.New(slog.NewTextHandler(&logged, nil))}
	fmt.Fprint(l, "http: TLS handshake error from 127.0.0.1:1: EOF\n")
	if logged.Len() > 0 {
		t.Errorf("a failed handshake is logged: %s", &logged)
	}
	fmt.Fprint(l, "http: panic serving 127.0.0.1:1: oh\ngoroutine 1")
	if !strings.Contains(logged.String(), "level=ERROR") {
		t.Errorf("a panic is not logged as an error: %s", &logged)
	}
}
