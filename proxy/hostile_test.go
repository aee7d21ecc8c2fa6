package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// pair is two servers that forward to each other over mutual TLS. Each has stale knowledge that the
// other serves gadgets, and neither serves them. pair records the requests from the first to the
// second.
type pair struct {
	front, back *shell
	near        *httptest.Server

	mu     sync.Mutex
	hopped []*http.Request
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{}
	// httptest's certificate is used by all servers and all clients.
	template := httptest.NewUnstartedServer(nil)
	template.StartTLS()
	own := template.TLS.Certificates[0]
	pool := x509.NewCertPool()
	pool.AddCert(template.Certificate())
	template.Close()
	toPeers := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com", Certificates: []tls.Certificate{own}}, ForceAttemptHTTP2: true}
	t.Cleanup(toPeers.CloseIdleConnections)
	upgrades := toPeers.Clone()
	upgrades.ForceAttemptHTTP2 = false
	upgrades.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.Cleanup(upgrades.CloseIdleConnections)
	byCertificate := func(c *Config) {
		c.FromPeer = func(r *http.Request) bool { return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 }
	}
	serve := func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	p.back = newShell(t, Reference(), capablePeers(nil), byProtocol{toPeers, upgrades}, byCertificate)
	far := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.hopped = append(p.hopped, r)
		p.mu.Unlock()
		p.back.ServeHTTP(w, r)
	}))
	p.front = newShell(t, Reference(), capablePeers(map[ServerID]string{"back": address(far)}, "back"), byProtocol{toPeers, upgrades}, byCertificate)
	p.near = serve(p.front)
	p.back.store.Observe(capablePeers(map[ServerID]string{"front": address(p.near)}, "front")...)
	return p
}

// raw sends bytes without changes and reads one answer.
func (p *pair) raw(t *testing.T, request string) *http.Response {
	t.Helper()
	conn, err := tls.Dial("tcp", address(p.near), trusting(p.near)) // without a certificate
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go io.WriteString(conn, request) // the server may answer before it has read everything
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body = io.NopCloser(strings.NewReader(string(body)))
	return answer
}

func TestHostileRequests(t *testing.T) {
	p := newPair(t)
	const get, host = "GET " + gadgetsPath + " HTTP/1.1\r\n", "Host: x\r\nConnection: close\r\n"
	for name, c := range map[string]struct {
		request string
		code    int
		hops    int // how often the far server was asked
	}{
		"nothing special":                     {get + host + "\r\n", 503, 1},
		"the hop header":                      {get + host + "X-Kubernetes-Peer-Proxied: true\r\n\r\n", 503, 1},
		"in mixed case":                       {get + host + "x-kubernetes-PEER-proxied: true\r\n\r\n", 503, 1},
		"by its published name":               {get + host + "X-Kubernetes-APIServer-Rerouted: true\r\n\r\n", 503, 1},
		"taken away by Connection":            {get + "Host: x\r\nConnection: close, X-Skewproof-Refused, X-Remote-User\r\n\r\n", 503, 1},
		"as a trailer":                        {"POST " + gadgetsPath + " HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTrailer: X-Skewproof-Refused, X-Remote-User\r\n\r\n0\r\nX-Skewproof-Refused: true\r\nX-Remote-User: root\r\n\r\n", 503, 1},
		"a space before the colon":            {get + host + "X-Kubernetes-Peer-Proxied : true\r\n\r\n", 400, 0},
		"a folded line":                       {get + host + "X-A: b\r\n X-Skewproof-Refused: true\r\n\r\n", 503, 1},
		"a bare CR":                           {get + host + "X-A: b\rX-Remote-User: root\r\n\r\n", 400, 0},
		"identity of another user":            {get + host + "X-Remote-User: system:admin\r\nx-remote-group: system:masters\r\nX-REMOTE-EXTRA-a: b\r\n\r\n", 503, 1},
		"a mark of refusal":                   {get + host + "X-Skewproof-Refused: true\r\n\r\n", 503, 1},
		"two lengths":                         {"POST " + gadgetsPath + " HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, 0},
		"a length and chunks":                 {"POST " + gadgetsPath + " HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 503, 1},
		"an unknown encoding":                 {"POST " + gadgetsPath + " HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, 0},
		"a header of two megabytes":           {get + host + "X-Big: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", 431, 0},
		"half a megabyte of headers":          {get + host + strings.Repeat("X-Skewproof-Refused: true\r\n", 15000) + "\r\n", 503, 1},
		"another host, absolute":              {"GET https://evil.test" + gadgetsPath + " HTTP/1.1\r\n" + host + "\r\n", 503, 1},
		"a user in the target":                {"GET https://root@evil.test" + gadgetsPath + " HTTP/1.1\r\n" + host + "\r\n", 503, 1},
		"dots in the path":                    {"GET /apis/new.k8s.io/v1/../v1/gadgets HTTP/1.1\r\n" + host + "\r\n", 200, 0},
		"dots, encoded":                       {"GET /apis/new.k8s.io/v1/%2e%2e/v1/gadgets HTTP/1.1\r\n" + host + "\r\n", 200, 0},
		"an encoded slash":                    {"GET /apis/new.k8s.io%2Fv1/gadgets HTTP/1.1\r\n" + host + "\r\n", 503, 1},
		"an asterisk":                         {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 200, 0},
		"a tunnel":                            {"CONNECT " + gadgetsPath + " HTTP/1.1\r\n" + host + "\r\n", 200, 0},
		"a method of its own":                 {"PROPFIND " + gadgetsPath + " HTTP/1.1\r\n" + host + "\r\n", 503, 1},
		"an upgrade to nothing":               {get + "Host: x\r\nConnection: Upgrade\r\nUpgrade:\r\n\r\n", 503, 1},
		"an upgrade to HTTP/2":                {get + "Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", 503, 1},
		"an upgrade to one of several":        {get + "Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\nUpgrade: HTTP/3.0\r\n\r\n", 503, 1},
		"an upgrade with the hop header":      {get + "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Kubernetes-Peer-Proxied: true\r\n\r\n", 503, 1},
		"impersonation that takes itself off": {get + "Host: x\r\nConnection: close, Impersonate-User\r\nImpersonate-User: bob\r\n\r\n", 400, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if !plainHop(c.request) {
				t.Fatalf("%.500s", c.request)
			}
			p.mu.Lock()
			p.hopped = nil
			p.mu.Unlock()
			p.front.local.mu.Lock()
			p.front.local.last = nil
			p.front.local.mu.Unlock()
			answer := p.raw(t, c.request)
			body, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != c.code {
				t.Errorf("%d %.200s, want %d", answer.StatusCode, body, c.code)
			}
			if said := mentionsHop(answer.Header, answer.Trailer); said != "" {
				t.Errorf("the client sees %s", said)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.hopped) != c.hops {
				t.Fatalf("the far server was asked %d times, want %d", len(p.hopped), c.hops)
			}
			for _, hop := range p.hopped {
				if diff := cmp.Diff([]string{"true"}, hop.Header.Values(HopHeader)); diff != "" {
					t.Errorf("on the hop (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"alice"}, hop.Header.Values("X-Remote-User")); diff != "" {
					t.Errorf("user (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"dev"}, hop.Header.Values("X-Remote-Group")); diff != "" {
					t.Errorf("groups (-want +got):\n%s", diff)
				}
				if upgrade := hop.Header.Get("Upgrade"); strings.Contains(upgrade, "h2c") {
					t.Errorf("the far server was asked for %s: a caller that got it could assert any identity there", upgrade)
				}
				if extra := hop.Header.Values("X-Remote-Extra-A"); extra != nil || len(hop.Trailer) > 0 || strings.Contains(hop.Host, "evil") {
					t.Errorf("extra %q, trailers %v, host %s: want none of the client's", extra, hop.Trailer, hop.Host)
				}
			}
			if last := p.front.local.request(); last != nil {
				if said := mentionsHop(last.Header, last.Trailer); said != "" {
					t.Errorf("the local server sees %s", said)
				}
			}
		})
	}
	for _, peer := range p.front.store.Table().Peers() {
		if !peer.EjectedUntil.IsZero() {
			t.Errorf("peer %s is avoided because of requests of clients", peer.ID)
		}
	}
}

// The peer may get the request, and may refuse it, before the handler reads the invalid chunk.
func TestInvalidChunks(t *testing.T) {
	p := newPair(t)
	answer := p.raw(t, "POST "+gadgetsPath+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
	if answer.StatusCode != 400 && answer.StatusCode != 503 {
		t.Errorf("%d, want 400, or the far server's 503", answer.StatusCode)
	}
	if peer := p.front.store.Table().Peers()[0]; !peer.EjectedUntil.IsZero() {
		t.Errorf("peer %s is avoided because of a request of the client", peer.ID)
	}
}

// If a client sends half a body and leaves, its request ends, and the peer is not to blame.
func TestBodyNeverEnds(t *testing.T) {
	asked := make(chan struct{})
	far := peerServer(t, false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		io.Copy(io.Discard, r.Body)
	}))
	s := newShell(t, Reference(), capablePeers(map[ServerID]string{"a": address(far)}, "a"), transportTo(t, far, false))
	ended := make(chan struct{})
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(near.Close)
	conn, err := net.Dial("tcp", near.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "POST "+gadgetsPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhalf")
	<-asked
	conn.Close()
	<-ended
	if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
		t.Error("the peer is avoided though the client broke off")
	}
}

// For every form of a target, the peer gets a request for the same resource as the client's
// request. It goes to the peer's own address only.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		gadgetsPath, gadgetsPath + "/a%2Fb?x=%zz;y", "/apis/new.k8s.io/v1/namespaces/n/gadgets/x", "//evil.test/apis", "/apis/../api", "/a?b#c",
		"https://user@evil.test/apis/new.k8s.io/v1/gadgets", "/apis/new.k8s.io/v1/%67adgets", "/openapi/v3/apis/new.k8s.io/v1?hash=x", "*", "/apis/new.k8s.io/v1/gadgets%3Fwatch=true",
	} {
		f.Add(seed)
	}
	resolver := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return // no server would let it in
		}
		r := &http.Request{Method: "GET", URL: u, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "x", RemoteAddr: "192.0.2.1:1"}
		want, err := resolver.NewRequestInfo(r)
		if err != nil {
			return // no API server knows its resource
		}
		asked := 0
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(sent *http.Request) (*http.Response, error) {
			asked++
			if sent.URL.Host != "a.test:6443" || sent.URL.Scheme != "https" || sent.URL.User != nil || sent.Host != "" {
				t.Errorf("sent to %s, Host %q", sent.URL, sent.Host)
			}
			arrived, err := url.ParseRequestURI(sent.URL.RequestURI()) // the URL as the peer's server reads it
			if err != nil {
				t.Fatalf("the peer cannot read %q: %v", sent.URL.RequestURI(), err)
			}
			if arrived.Path != u.Path || arrived.EscapedPath() != u.EscapedPath() || arrived.RawQuery != u.RawQuery {
				t.Errorf("sent %q, want %q", arrived, u)
			}
			got, err := resolver.NewRequestInfo(&http.Request{Method: sent.Method, URL: arrived})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("asks for something else (-client +peer):\n%s", diff)
			}
			return says(200, "peer"), nil
		}), func(c *Config) { c.Now = func() time.Time { return epoch } })
		s.serve(r)
		if asked > 1 {
			t.Errorf("asked %d peers for one answer", asked)
		}
	})
}
