package peers

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// serveTLS starts a server on loopback, and makes a client that trusts it.
func serveTLS(t *testing.T, h http.Handler) (*discoveryClient, url.URL) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet()
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	policy := proxy.Reference().Fetching
	return &discoveryClient{Transport: s.Client().Transport, Accept: policy.Accept, Timeout: 10 * time.Second, Together: true, Hop: true}, *address
}

func TestClientAsks(t *testing.T) {
	s := newServer(t, "v1.37.1", "apps/v1 deployments")
	c, address := serveTLS(t, s)
	var mu sync.Mutex
	codes := map[int]int{}
	c.Answered = func(code int) { mu.Lock(); defer mu.Unlock(); codes[code]++ }

	a := c.ask(t.Context(), address, nil)
	want := [2]proxy.RootResult{{Groups: s.api}, {Groups: s.apis}}
	if diff := cmp.Diff(want, a.Roots); diff != "" || a.Version != "v1.37.1" || a.Broken {
		t.Fatalf("version %q, broken %v, documents (want -, got +):\n%s", a.Version, a.Broken, diff)
	}
	for _, r := range s.requests {
		for name, want := range map[string]string{
			"X-Remote-User": "system:apiserver", "X-Remote-Uid": "system:apiserver", "X-Kubernetes-Peer-Proxied": "true",
			"X-Remote-Group": "system:authenticated",
		} {
			if got := strings.Join(r.Header.Values(name), ","); got != want {
				t.Errorf("%s: header %s is %q, want %q", r.URL.Path, name, got, want)
			}
		}
		if accept := r.Header.Get("Accept"); r.URL.Path != "/version" && accept != c.Accept {
			t.Errorf("%s: Accept %q", r.URL.Path, accept)
		}
	}
	if len(s.requests) != 3 || codes[200] != 3 {
		t.Errorf("%d requests, answers %v; want three, all 200", len(s.requests), codes)
	}
}

// Whether nobody listens is told from the connection, also where a balancer stands in front of the
// server: that accepts a connection, and resets it. A server that answers late has not refused.
func TestClientTellsARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		serve   func(net.Listener)
		refused bool
		why     string
	}{
		"refused": {func(l net.Listener) { _ = l.Close() }, true, "it refused the connection"},
		"reset": {func(l net.Listener) {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_, _ = c.Read(make([]byte, 1)) // the TLS handshake has begun
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			}
		}, true, "it broke the connection off"},
		"silent": {func(net.Listener) {}, false, "it did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if name == "refused" {
				c.serve(l)
			} else {
				go c.serve(l)
			}
			client := &discoveryClient{Transport: &http.Transport{}, Timeout: time.Second}
			a := client.ask(t.Context(), url.URL{Scheme: "https", Host: l.Addr().String()}, nil)
			if why := a.Roots[proxy.RootGroups].Failed; a.Refused != c.refused || a.Broken != c.refused || why != c.why {
				t.Errorf("refused %v, broken %v, failed %q; want %v for both, %q", a.Refused, a.Broken, why, c.refused, c.why)
			}
		})
	}
}

func TestClientUsesConfiguredHeaders(t *testing.T) {
	s := newServer(t, "v1.37.1")
	c, address := serveTLS(t, s)
	c.Identity, c.Privileged, c.Hop = proxy.IdentityHeaders{User: "X-User", Group: "X-Group"}, true, false
	c.ask(t.Context(), address, nil)
	h := s.requests[0].Header
	if h.Get("X-User") != "system:apiserver" || strings.Join(h.Values("X-Group"), ",") != "system:authenticated,system:masters" || h.Get("X-Remote-Uid") != "system:apiserver" || h.Get("X-Remote-User") != "" {
		t.Errorf("headers: %v", h)
	}
	if _, ok := h["X-Kubernetes-Peer-Proxied"]; ok {
		t.Error("the hop header was sent to the local server")
	}
}

// A server does not send an unchanged document again, and ask returns the very same document.
func TestClientAsksConditionally(t *testing.T) {
	s := newServer(t, "v1.37.1", "apps/v1 deployments")
	c, address := serveTLS(t, s)
	c.Together = false
	first := c.ask(t.Context(), address, nil)
	s.taken()

	again := c.ask(t.Context(), address, first)
	if diff := cmp.Diff([]int{304, 304}, s.taken()); diff != "" {
		t.Fatalf("status codes: %s", diff)
	}
	for root := range again.Roots {
		if !discovery.Same(first.Roots[root].Groups, again.Roots[root].Groups) {
			t.Errorf("%s is another slice", proxy.Root(root).Path())
		}
	}

	s.set(func() { s.apis = document("apps/v1 deployments daemonsets") })
	changed := c.ask(t.Context(), address, again)
	if diff := cmp.Diff([]int{304, 200}, s.taken()); diff != "" {
		t.Fatalf("status codes: %s", diff)
	}
	if diff := cmp.Diff(s.apis, changed.Roots[proxy.RootGroups].Groups); diff != "" {
		t.Error(diff)
	}

	// After a failure in between, the client still has the earlier documents.
	s.set(func() { s.failing["/apis"] = respond(500) })
	failed := c.ask(t.Context(), address, changed)
	if why := failed.Roots[proxy.RootGroups].Failed; why != "it answered 500" || failed.Broken {
		t.Fatalf("failed %q, broken %v", why, failed.Broken)
	}
	s.set(func() { clear(s.failing); s.statuses = nil })
	back := c.ask(t.Context(), address, failed)
	if diff := cmp.Diff([]int{304, 304}, s.taken()); diff != "" {
		t.Fatalf("status codes: %s", diff)
	}
	if !discovery.Same(changed.Roots[proxy.RootGroups].Groups, back.Roots[proxy.RootGroups].Groups) {
		t.Error("another slice after a failure")
	}

	// The same happens without ETags: the document is sent again, and the client recognises it.
	s.set(func() { s.noETag = true })
	plain := c.ask(t.Context(), address, nil)
	if again := c.ask(t.Context(), address, plain); !discovery.Same(plain.Roots[proxy.RootGroups].Groups, again.Roots[proxy.RootGroups].Groups) {
		t.Error("an equal document is another slice")
	}
}

func TestClientReadsGzip(t *testing.T) {
	s := newServer(t, "v1.37.1")
	c, address := serveTLS(t, s)
	s.failing["/apis"] = func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			http.Error(w, "no gzip", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", discovery.AcceptV2)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"apiVersion":"apidiscovery.k8s.io/v2","kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"}}]}`)
		_ = z.Close()
	}
	if got := c.ask(t.Context(), address, nil).Roots[proxy.RootGroups]; got.Failed != "" || len(got.Groups) != 1 {
		t.Fatalf("%+v", got)
	}
}

// Each kind of wrong answer has its own error text. None of the texts names an address.
func TestClientFailures(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", discovery.AcceptV2)
		chunk := bytes.Repeat([]byte(" "), 1<<20)
		for { // until the client stops reading
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for _, tc := range []struct {
		name       string
		answer     http.HandlerFunc
		want       string // a part of the error
		broken     bool
		impatient  bool // the client waits only 50 ms
		emptyIsDoc bool
	}{
		{name: "an error", answer: respond(503), want: "it answered 503"},
		{name: "a 304 to a request without an ETag", answer: respond(304), want: "it answered 304"},
		{name: "a redirect is not followed", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		}, want: "it answered 307, and redirects are not followed"},
		{name: "too long", answer: endless, want: "longer than"},
		{name: "not JSON", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{")
		}, want: "its answer cannot be used"},
		{name: "a page", answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, want: "its answer cannot be used"},
		{name: "a Status", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1"}`)
		}, want: "a Status"},
		{name: "an encoding that was not requested", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "x")
		}, want: "has an encoding"},
		{name: "broken off", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
			panic(http.ErrAbortHandler)
		}, want: "", broken: true},
		{name: "no answer", answer: hang, want: "it did not answer in time", impatient: true},
		{name: "no body, for which an empty one would count", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", discovery.AcceptV2)
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, want: "it did not answer in time", impatient: true, emptyIsDoc: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, "v1.37.1")
			c, address := serveTLS(t, s)
			if c.EmptyIsDocument = tc.emptyIsDoc; tc.impatient {
				c.Timeout = 50 * time.Millisecond
			}
			s.failing["/apis"] = tc.answer
			a := c.ask(t.Context(), address, nil)
			why, groups := a.Roots[proxy.RootGroups].Failed, a.Roots[proxy.RootGroups].Groups
			if why == "" || !strings.Contains(why, tc.want) || groups != nil {
				t.Errorf("failed %q, and got %v; want it to say %q, and nothing", why, groups, tc.want)
			}
			if a.Broken != tc.broken {
				t.Errorf("broken %v, want %v", a.Broken, tc.broken)
			}
			if strings.Contains(why, "127.0.0.1") || strings.Contains(why, address.Port()) {
				t.Errorf("%q names an address", why)
			}
		})
	}
}

func TestClientCannotConnect(t *testing.T) {
	s := newServer(t, "v1.37.1")
	c, address := serveTLS(t, s)
	ask := func(change func(*http.Transport)) *answer {
		transport := c.Transport.(*http.Transport).Clone()
		change(transport)
		t.Cleanup(transport.CloseIdleConnections)
		client := *c
		client.Transport = transport
		return client.ask(t.Context(), address, nil)
	}
	for name, tc := range map[string]struct {
		change func(*http.Transport)
		want   string
	}{
		"an unknown authority": {func(tr *http.Transport) { tr.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()} }, "an authority that is not trusted"},
		"another name":         {func(tr *http.Transport) { tr.TLSClientConfig.ServerName = "kubernetes.default.svc" }, "for another name"},
		"an old TLS": {func(tr *http.Transport) {
			tr.TLSClientConfig.MinVersion, tr.TLSClientConfig.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
		}, "it refused the TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(tc.change)
			why := a.Roots[proxy.RootGroups].Failed
			if why == "" || !strings.Contains(why, tc.want) || !a.Broken {
				t.Errorf("failed %q, broken %v; want it broken and to say %q", why, a.Broken, tc.want)
			}
			if strings.Contains(why, "127.0.0.1") || strings.Contains(why, "example.com") {
				t.Errorf("%q names an address", why)
			}
		})
	}
}

// Without Together, the requests are sent one after the other, in the caller's goroutine. The
// client asks for the version unless it got no document at all.
func TestClientInTurn(t *testing.T) {
	for _, c := range []struct {
		fail, want []string
	}{
		{nil, []string{"/api", "/apis", "/version"}},
		{[]string{"/api"}, []string{"/api", "/apis", "/version"}},
		{[]string{"/apis"}, []string{"/api", "/apis", "/version"}},
		{[]string{"/version"}, []string{"/api", "/apis", "/version"}},
		{[]string{"/api", "/apis"}, []string{"/api", "/apis"}},
	} {
		s := newServer(t, "v1.37.1", "apps/v1 deployments")
		for _, path := range c.fail {
			s.failing[path] = respond(http.StatusInternalServerError)
		}
		client, address := serveTLS(t, s)
		client.Together = false
		answer := client.ask(t.Context(), address, nil)
		var asked []string
		for _, r := range s.requests {
			asked = append(asked, r.URL.Path)
		}
		if diff := cmp.Diff(c.want, asked); diff != "" {
			t.Errorf("%q fail: asked for (want -, got +):\n%s", c.fail, diff)
		}
		if known := slices.Contains(c.want, "/version") && !slices.Contains(c.fail, "/version"); (answer.Version != "") != known {
			t.Errorf("%q fail: the version is %q", c.fail, answer.Version)
		}
	}
}

func TestTroubleIsBounded(t *testing.T) {
	if got := (documentError{fmt.Errorf("%s", strings.Repeat("ä", 300))}).Error(); len(got) > 260 {
		t.Errorf("%d bytes", len(got))
	}
}
