package interpose

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/skewproof/skewproof/internal/pki"

	"github.com/skewproof/skewproof/internal/fault"
)

// patience is the limit of every wait of the tests. No wait should come near it.
const patience = 20 * time.Second

const serverName = "kubernetes.default.svc"

// tag is the entity tag of all documents of the server.
const tag = `"1"`

// bench is a server with an interposer in front of it. The server's answer names the request, the
// authenticated peer and the user.
type bench struct {
	*Interposer
	t       *testing.T
	trust   *x509.CertPool
	peer    tls.Certificate // of the front-proxy authority
	other   tls.Certificate // of the same authority, with a name that the server does not allow
	user    tls.Certificate // of the clients' authority
	release chan struct{}   // lets /slow continue
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, release: make(chan struct{})}
	dir := t.TempDir()
	authority := func(name string) (*pki.Authority, *x509.CertPool) {
		a, err := pki.NewAuthority(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(a.CertFile())
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(content)
		return a, pool
	}
	issue := func(a *pki.Authority, name string, r pki.Request) tls.Certificate {
		pair, err := a.Issue(name, r)
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ca, trust := authority("ca")
	frontProxy, frontProxyTrust := authority("front-proxy-ca")
	b.trust = trust
	serving := issue(ca, "serving", pki.Request{CommonName: "a", Server: true, DNSNames: []string{serverName}})
	b.peer = issue(frontProxy, "front-proxy-client", pki.Request{CommonName: "front-proxy-client", Client: true})
	b.other = issue(frontProxy, "front-proxy-other", pki.Request{CommonName: "front-proxy-other", Client: true})
	b.user = issue(ca, "user", pki.Request{CommonName: "mallory", Client: true})

	real := httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	real.EnableHTTP2 = true
	real.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequestClientCert}
	real.StartTLS()
	t.Cleanup(real.Close)
	var err error
	b.Interposer, err = New(Config{
		Real: netip.MustParseAddrPort(real.Listener.Addr().String()), Name: serverName, ServingCA: trust,
		Serving:    func() (*tls.Certificate, error) { return &serving, nil },
		FrontProxy: func() (*tls.Certificate, error) { return &b.peer, nil }, FrontProxyCA: frontProxyTrust,
		FrontProxyName: "front-proxy-client",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// serve is the real server.
func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/slow":
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		<-b.release
		return
	case "/upgrade":
		connection, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		_ = connection.WriteMessage(websocket.TextMessage, []byte("upgraded for "+r.Header.Get("X-Remote-User")))
		_ = connection.Close()
		return
	case "/abort":
		panic(http.ErrAbortHandler)
	case "/api":
		defer func() { _, _ = io.WriteString(w, strings.Repeat("more ", 10_000)) }()
	}
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	who := "nobody"
	if len(r.TLS.PeerCertificates) > 0 {
		who = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	fmt.Fprintf(w, "%s %s of %s by %s for %q in %q through %q in %s", r.Method, r.RequestURI, r.Host, who, r.Header.Get("X-Remote-User"),
		r.Header.Get("X-Remote-Extra-Scopes"), r.Header.Get("X-Forwarded-For"), r.Proto)
}

// ask sends a request to the interposer, over a connection with the given certificates.
func (b *bench) ask(method, path string, with ...tls.Certificate) (int, string, error) {
	b.t.Helper()
	way := &http.Transport{TLSClientConfig: b.dialing(with...), ForceAttemptHTTP2: true}
	defer way.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "https://"+b.Address().String()+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Host = "a.example:6443"
	r.Header.Set("X-Remote-User", "alice")
	r.Header.Set("X-Remote-Extra-Scopes", "all")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	response, err := (&http.Client{Transport: way}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func (b *bench) dialing(with ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: b.trust, ServerName: serverName, Certificates: with, MinVersion: tls.VersionTLS12}
}

func TestOnlyTheSpoiltDocumentFailsAndOnlyForPeers(t *testing.T) {
	b := newBench(t)
	status := func(want int, method, path string, with ...tls.Certificate) {
		t.Helper()
		if got, body, err := b.ask(method, path, with...); err != nil || got != want {
			t.Errorf("%s %s: %d, %v, want %d: %s", method, path, got, err, want, body)
		}
	}
	status(200, "GET", "/apis", b.peer)
	b.BreakDiscovery("/apis", fault.ServerError)
	status(500, "GET", "/apis", b.peer)
	status(500, "GET", "/apis/", b.peer)
	for _, path := range []string{"/api", "/apis/apps", "/apis/apps/v1/deployments", "/readyz"} {
		status(200, "GET", path, b.peer)
	}
	status(200, "POST", "/apis", b.peer)
	status(200, "GET", "/apis")
	status(200, "GET", "/apis", b.user)
	if got := b.RestoreDiscovery("/apis"); got != 2 {
		t.Errorf("%d fetches have failed, want 2", got)
	}
	status(200, "GET", "/apis", b.peer)
	if got := b.RestoreDiscovery("/apis"); got != 0 {
		t.Errorf("%d fetches have failed since the document was restored", got)
	}
}

// The interposer must not make a client a peer that has not proved to be one, and must not let such
// a client name a user.
func TestWhatIsPassedOnIsWhatCame(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		with []tls.Certificate
		want string
	}{
		"a peer":                           {[]tls.Certificate{b.peer}, `by front-proxy-client for "alice" in "all"`},
		"nobody":                           {nil, `by nobody for "" in ""`},
		"another":                          {[]tls.Certificate{b.user}, `by nobody for "" in ""`},
		"a peer whose name is not allowed": {[]tls.Certificate{b.other}, `by nobody for "" in ""`},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := b.ask("GET", "/api/v1/pods/a%2Fb?x=2&a=1", c.with...)
			want := "GET /api/v1/pods/a%2Fb?x=2&a=1 of a.example:6443 " + c.want + ` through "192.0.2.1" in HTTP/2.0`
			if err != nil || status != 200 || body != want {
				t.Errorf("%d, %v:\n%s, want\n%s", status, err, body, want)
			}
		})
	}
}

func TestAStreamComesAsItIsMade(t *testing.T) {
	b := newBench(t)
	way := &http.Transport{TLSClientConfig: b.dialing(b.peer), ForceAttemptHTTP2: true}
	defer way.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.Address().String()+"/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := way.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || line != "first\n" {
		t.Errorf("read %q, %v before the answer was complete", line, err)
	}
	close(b.release)
}

func TestAConnectionCanBeUpgraded(t *testing.T) {
	b := newBench(t)
	dialer := websocket.Dialer{TLSClientConfig: b.dialing(b.peer), HandshakeTimeout: patience}
	connection, _, err := dialer.DialContext(t.Context(), "wss://"+b.Address().String()+"/upgrade", http.Header{"X-Remote-User": {"alice"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, message, err := connection.ReadMessage(); err != nil || string(message) != "upgraded for alice" {
		t.Errorf("read %q, %v", message, err)
	}
}

// A peer would believe that an answer of the interposer itself comes from the server.
func TestWhatTheServerDoesNotAnswerIsNotAnswered(t *testing.T) {
	b := newBench(t)
	if status, body, err := b.ask("GET", "/abort", b.peer); err == nil {
		t.Errorf("%d %q, want the connection to be broken", status, body)
	}
}

func TestTheConnectionsOfAClosedSpoilerEnd(t *testing.T) {
	b := newBench(t)
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", b.Address().String(), b.dialing(b.peer))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := io.WriteString(connection, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(connection).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("read %q, %v", line, err)
	}
	b.Close()
	if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, connection); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("the connection lives on: %v", err)
	}
	close(b.release)
}
