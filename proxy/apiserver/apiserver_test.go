package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/internal/wire"
	"github.com/skewproof/skewproof/proxy/peers"
)

// world has the files of a server, and a peer that has what the server lacks.
type world struct {
	options Options
	config  *genericapiserver.Config
	front   *authority // of front proxies
	peer    *httptest.Server
	asked   chan *http.Request // what reached the peer
}

// noKeys has no keys. Nothing asks it, because no proxy of these tests runs.
type noKeys struct{ peers.Etcd }

const gadgets = "/apis/example.com/v1/gadgets"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	servers, front := newAuthority(t, "servers"), newAuthority(t, "front-proxies")
	w := &world{front: front, asked: make(chan *http.Request, 10)}
	w.options = Options{Policy: proxy.Reference(), Address: "192.0.2.1:6443", Port: 6443, Etcd: noKeys{}, PeerCAFile: write(t, dir, "ca.crt", servers.pem)}
	w.options.Policy.Routing.DialTimeout = 0 // of the reference it is too short for a handshake on a busy machine
	mine := front.issue(t, "front-proxy-client", "")
	w.options.ClientCertFile, w.options.ClientKeyFile = write(t, dir, "client.crt", mine.cert), write(t, dir, "client.key", mine.key)

	w.peer = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked <- r
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"kind":"GadgetList"}`)
	}))
	pool := x509.NewCertPool()
	pool.AddCert(front.cert)
	serving := servers.issue(t, "a", peerServerName)
	pair, err := tls.X509KeyPair(serving.cert, serving.key)
	if err != nil {
		t.Fatal(err)
	}
	w.peer.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	w.peer.EnableHTTP2 = true
	w.peer.StartTLS()
	t.Cleanup(w.peer.Close)

	authorities, err := dynamiccertificates.NewStaticCAContent("front-proxies", front.pem)
	if err != nil {
		t.Fatal(err)
	}
	names := func(all ...string) headerrequest.StringSliceProvider { return headerrequest.StaticStringSlice(all) }
	w.config = genericapiserver.NewConfig(serializer.NewCodecFactory(runtime.NewScheme()))
	w.config.APIServerID = "apiserver-self"
	w.config.LoopbackClientConfig = &rest.Config{Host: "https://192.0.2.1:6443"}
	w.config.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders: names("X-Remote-User"), GroupHeaders: names("X-Remote-Group"), ExtraHeaderPrefixes: names("X-Remote-Extra-"),
		CAContentProvider: authorities, AllowedClientNames: names("front-proxy-client"),
	}
	w.config.BuildHandlerChainFunc = func(api http.Handler, _ *genericapiserver.Config) http.Handler { return authenticated(api) }
	return w
}

// authenticated is a chain of filters that knows every caller as alice.
func authenticated(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}})))
	})
}

// installed returns the proxy, and the chain in front of a server that has only /apis/local/v1.
func (w *world) installed(t *testing.T) (*Proxy, http.Handler) {
	t.Helper()
	p, err := Install(w.config, w.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	p.ready.Store(true)
	return p, w.config.BuildHandlerChainFunc(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/apis/local/v1") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "local")
	}), w.config)
}

// knows tells the proxy what this server and its peer serve.
func (w *world) knows(p *Proxy) {
	now := time.Now()
	p.store.Observe(proxy.LocalFetched{At: now, Roots: [2]discovery.Groups{proxy.RootGroups: serves("local")}},
		proxy.PeerAppeared{ID: "apiserver-a", Incarnation: "1"},
		proxy.PeerAddress{ID: "apiserver-a", Address: w.peer.Listener.Addr().String()},
		proxy.Fetched{At: now, Results: []proxy.FetchResult{{ID: "apiserver-a", Incarnation: "1",
			Roots: [2]proxy.RootResult{proxy.RootGroups: {Groups: serves("example.com")}}}}},
		proxy.Synced{})
}

func serves(group string) discovery.Groups {
	return discovery.Groups{{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			Resources: []apidiscoveryv2.APIResourceDiscovery{{Resource: "gadgets", Scope: apidiscoveryv2.ScopeCluster,
				ResponseKind: &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}, Verbs: []string{"list"}}}}},
	}}
}

func TestARequestForWhatAPeerServesReachesThePeer(t *testing.T) {
	w := newWorld(t)
	p, chain := w.installed(t)
	w.knows(p)
	answer := httptest.NewRecorder()
	chain.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, gadgets, nil))
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "GadgetList") {
		t.Fatalf("answered %d %s, want the peer's list", answer.Code, answer.Body)
	}
	r := <-w.asked
	if got := r.Header.Get("X-Remote-User"); got != "alice" {
		t.Errorf("the peer was told the user %q, want alice", got)
	}
	if r.Header.Get(proxy.HopHeader) != "true" {
		t.Error("the peer was not told that the request was passed on")
	}
	if got := r.TLS.PeerCertificates[0].Subject.CommonName; got != "front-proxy-client" {
		t.Errorf("the peer saw the certificate of %q, want that of the front proxy", got)
	}
	if r.ProtoMajor != 2 {
		t.Errorf("the peer was asked over %s, want HTTP/2", r.Proto)
	}
}

// A request to a peer has a span below the request's own, and the peer is told this span.
func TestARequestToAPeerHasASpan(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	w := newWorld(t)
	w.config.TracerProvider = provider
	p, chain := w.installed(t)
	w.knows(p)
	ctx, own := provider.Tracer("").Start(t.Context(), "own")
	chain.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, gadgets, nil).WithContext(ctx))
	told := (<-w.asked).Header.Get("Traceparent")
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Parent().SpanID() != own.SpanContext().SpanID() {
		t.Fatalf("the request has %d spans below its own, want one: %v", len(ended), ended)
	}
	if id := ended[0].SpanContext().SpanID().String(); !strings.Contains(told, id) {
		t.Errorf("the peer was told %q, want the span %s", told, id)
	}
}

func TestWhatTheServerServesStaysWithIt(t *testing.T) {
	w := newWorld(t)
	p, chain := w.installed(t)
	w.knows(p)
	answer := httptest.NewRecorder()
	chain.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/apis/local/v1/gadgets", nil))
	if answer.Body.String() != "local" {
		t.Errorf("answered %d %s, want the server's own answer", answer.Code, answer.Body)
	}
}

// A request that a peer passes on is never passed on again. A client that claims the same is no
// peer. The audit event says by whom a request was passed on, or to whom.
func TestOnlyAFrontProxyIsAPeer(t *testing.T) {
	w := newWorld(t)
	p, chain := w.installed(t)
	w.knows(p)
	passedOn := map[string]string{PeerAnnotation: "apiserver-a"}
	for name, c := range map[string]struct {
		by    *authority
		as    string
		want  int
		audit map[string]string
	}{
		"a peer":                           {w.front, "front-proxy-client", http.StatusServiceUnavailable, map[string]string{ForwardedByAnnotation: "front-proxy-client"}},
		"another name":                     {w.front, "somebody", http.StatusOK, passedOn},
		"a name from another authority":    {newAuthority(t, "strangers"), "front-proxy-client", http.StatusOK, passedOn},
		"a client that has no certificate": {nil, "", http.StatusOK, passedOn},
	} {
		t.Run(name, func(t *testing.T) {
			r := claimsToBeForwarded(t, gadgets, c.by, c.as)
			answer, events := httptest.NewRecorder(), &events{}
			genericapifilters.WithAuditInit(genericapifilters.WithRequestInfo(genericapifilters.WithAudit(chain, events,
				policy.NewFakePolicyRuleEvaluator(auditinternal.LevelMetadata, nil), nil),
				genericapiserver.NewRequestInfoResolver(w.config))).ServeHTTP(answer, r)
			if answer.Code != c.want {
				t.Errorf("answered %d %s, want %d", answer.Code, answer.Body, c.want)
			}
			if !maps.Equal(events.annotations, c.audit) {
				t.Errorf("the audit event has %v, want %v", events.annotations, c.audit)
			}
		})
	}
}

// claimsToBeForwarded is a request with the header of the hop, by a client with a certificate of
// an authority; nil: with none.
func claimsToBeForwarded(t *testing.T, path string, by *authority, as string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set(proxy.HopHeader, "true")
	r.TLS = &tls.ConnectionState{}
	if by != nil {
		block, _ := pem.Decode(by.issue(t, as, "").cert)
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		r.TLS.PeerCertificates = []*x509.Certificate{leaf}
	}
	return r
}

// Before a server is ready it would refuse everybody, because it has not loaded the rules of
// authorization.
func TestAServerThatIsNotReadyPutsItsPeersOff(t *testing.T) {
	const local = "/apis/local/v1/gadgets"
	w := newWorld(t)
	p, chain := w.installed(t)
	w.knows(p)
	ask := func(by *authority) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		chain.ServeHTTP(answer, claimsToBeForwarded(t, local, by, "front-proxy-client"))
		return answer
	}
	p.ready.Store(false)
	if got := ask(w.front); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "1" || !strings.Contains(got.Body.String(), `"kind":"Status"`) {
		t.Errorf("a peer got %d %v %s, want a 503 after which it asks another server", got.Code, got.Header(), got.Body)
	}
	if got := ask(newAuthority(t, "strangers")); got.Body.String() != "local" {
		t.Errorf("a client got %d %s, want what the chain answers", got.Code, got.Body)
	}
	answer := httptest.NewRecorder()
	chain.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, local, nil))
	if answer.Body.String() != "local" {
		t.Errorf("a client without the header got %d %s, want what the chain answers", answer.Code, answer.Body)
	}
	p.ready.Store(true)
	if got := ask(w.front); got.Body.String() != "local" {
		t.Errorf("when it is ready, a peer got %d %s, want the server's own answer", got.Code, got.Body)
	}
}

// events keeps the annotations of the last audit event.
type events struct{ annotations map[string]string }

func (e *events) ProcessEvents(all ...*auditinternal.Event) bool {
	e.annotations = maps.Clone(all[len(all)-1].Annotations)
	return true
}

func TestAServerIsReadyOnceItKnowsItsPeersAndTheyKnowIt(t *testing.T) {
	w := newWorld(t)
	p, _ := w.installed(t)
	failing := func() (names []string) {
		for _, check := range w.config.ReadyzChecks {
			if strings.HasPrefix(check.Name(), "mixed-version-proxy") && check.Check(nil) != nil {
				names = append(names, check.Name())
			}
		}
		return names
	}
	if got := failing(); len(got) != 2 {
		t.Errorf("at first %q fail, want both checks", got)
	}
	w.knows(p)
	if got := failing(); len(got) != 1 || got[0] != addressCheck {
		t.Errorf("with knowledge %q fail, want only %s", got, addressCheck)
	}
}

// A peer with a certificate that peers must not have gets no request.
func TestTheTransportVerifiesPeers(t *testing.T) {
	w := newWorld(t)
	strangers := newAuthority(t, "strangers")
	w.options.PeerCAFile = write(t, t.TempDir(), "ca.crt", strangers.pem)
	p, chain := w.installed(t)
	w.knows(p)
	answer := httptest.NewRecorder()
	chain.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, gadgets, nil))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d, want 503", answer.Code)
	}
	if len(w.asked) > 0 {
		t.Error("the request reached a server that is no peer")
	}
}

// Requests that must not share a connection go over HTTP/1.1.
func TestRequestsThatNeedTheirOwnConnection(t *testing.T) {
	w := newWorld(t)
	p, _ := w.installed(t)
	target := "https://" + w.peer.Listener.Addr().String() + gadgets
	for name, c := range map[string]struct {
		body    io.Reader
		upgrade string
		user    string
		groups  int
		want    int
	}{
		"usual":           {want: 2},
		"repeatable body": {body: strings.NewReader("{}"), want: 2},
		"stream":          {body: io.MultiReader(strings.NewReader("{}")), want: 1},
		"upgrade":         {upgrade: "SPDY/3.1", want: 1},
		"anonymous":       {user: user.Anonymous, want: 1},
		"many groups":     {groups: wire.ManyHeaderValues, want: 1},
		"fewer groups":    {groups: wire.ManyHeaderValues - 1, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, c.body)
			if err != nil {
				t.Fatal(err)
			}
			if c.upgrade != "" {
				r.Header.Set("Upgrade", c.upgrade)
			}
			r.Header[proxy.HopHeader] = []string{"true"}
			r.Header["X-Remote-Group"] = make([]string, c.groups)
			if c.user != "" {
				r = r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: c.user, Groups: []string{user.AllUnauthenticated}}))
			}
			answer, err := p.transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if got := (<-w.asked).ProtoMajor; got != c.want {
				t.Errorf("asked over HTTP/%d, want HTTP/%d", got, c.want)
			}
		})
	}
}

func TestInstallRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"no identity":      {func(w *world) { w.config.APIServerID = "" }, "APIServerIdentity"},
		"no front proxies": {func(w *world) { w.config.Authentication.RequestHeaderConfig = nil }, "--requestheader-client-ca-file"},
		"no authority":     {func(w *world) { w.options.PeerCAFile = "absent" }, "--peer-ca-file"},
		"no certificate":   {func(w *world) { w.options.ClientCertFile = "absent" }, "--proxy-client-cert-file"},
		"no user header": {func(w *world) {
			w.config.Authentication.RequestHeaderConfig.UsernameHeaders = headerrequest.StaticStringSlice(nil)
		}, "--requestheader-username-headers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			if _, err := Install(w.config, w.options); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Install: %v, want an error about %s", err, c.want)
			}
		})
	}
}

// The server is asked behind its filters, so it needs no connection and no credentials.
func TestInProcess(t *testing.T) {
	var api http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, _ := apirequest.UserFrom(r.Context())
		w.Header().Set("User", u.GetName())
		w.WriteHeader(http.StatusNotModified)
		w.WriteHeader(http.StatusOK) // which comes too late
	})
	u := &url.URL{Scheme: "https", Host: "localhost", Path: "/apis"}
	answer, err := inProcess{&api}.RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusNotModified || answer.Header.Get("User") != user.APIServerUser {
		t.Errorf("answered %d to %q, want 304 to %s", answer.StatusCode, answer.Header.Get("User"), user.APIServerUser)
	}
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

type issued struct{ cert, key []byte }

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	made := (&authority{}).make(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, &a.key)
	block, _ := pem.Decode(made.cert)
	var err error
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	a.pem = made.cert
	return a
}

// issue makes a certificate for clients, and for the server of that name.
func (a *authority) issue(t *testing.T, commonName, server string) issued {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: commonName}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if server != "" {
		template.DNSNames = []string{server}
	}
	return a.make(t, template, nil)
}

func (a *authority) make(t *testing.T, template *x509.Certificate, keep **ecdsa.PrivateKey) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Unix(0, 0), time.Now().Add(time.Hour) // a synctest bubble begins in 2000
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	if keep != nil {
		*keep = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})}
}

func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
