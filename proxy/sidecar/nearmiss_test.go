package sidecar

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// A peer counts only with a certificate for the name that KEP-4020 demands.
func TestNamesNearThatOfAPeer(t *testing.T) {
	w := newWorld(t)
	o := w.options("near", nil)
	o.Upstream = "https://127.0.0.1:1"
	c, err := o.complete(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	credentials := c.credentials
	for name, good := range map[string]bool{
		peerServerName: true, "KUBERNETES.default.svc": true, "*.default.svc": true, // as X.509 compares names
		"": false, "kubernetes": false, "kubernetes.default": false, "kubernetes.default.svc.cluster.local": false, "kubernetes.default.svcx": false,
		"xkubernetes.default.svc": false, "a.kubernetes.default.svc": false, "kubernetes-default.svc": false, "*.svc": false, "*.*.svc": false,
		"kubernetes.*.svc": false, "*": false, "kubernetes.kube-system.svc": false, "localhost": false,
	} {
		s := subject{name: peerServerName} // the common name does not count
		if name != "" {
			s.dns = []string{name}
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{w.ca.issue(s).tls(t)}}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		toPeer := newTransport(0, 0, func() *tls.Config { return credentials.clientTLS(credentials.peerCA, peerServerName) })
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := toPeer.RoundTrip(request)
		if err == nil {
			answer.Body.Close()
		}
		if (err == nil) != good {
			t.Errorf("a certificate for %q: %v; accepted %t, want %t", name, err, err == nil, good)
		}
		toPeer.close()
		server.Close()
	}
}

// The admin listener answers only requests for a loopback address, or for localhost.
func TestHostsNearALoopbackAddress(t *testing.T) {
	handler := loopbackHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, good := range map[string]bool{
		"localhost": true, "localhost:6440": true, "127.0.0.1": true, "127.0.0.1:6440": true, "127.1.2.3:6440": true, "[::1]:6440": true, "::1": true,
		"[::ffff:127.0.0.1]:6440": true,
		"":                        false, "localhost.": false, "localhost.evil.test": false, "evil.localhost": false, "LOCALHOST.evil": false, "localhos": false,
		"127.0.0.1.evil.test": false, "127.0.0.1.nip.io:6440": false, "127.1": false, "0.0.0.0:6440": false, "[::]:6440": false, "128.0.0.1": false,
		"126.255.255.255": false, "[::2]:6440": false, "0x7f000001": false, "2130706433": false, "[::ffff:128.0.0.1]:6440": false, "127.0.0.1@evil.test": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if (w.Code == http.StatusOK) != good {
			t.Errorf("host %q: %d, want %t", host, w.Code, good)
		}
	}
}

// Only the exact paths of the sidecar's own pages are its own; the local server answers the others.
func TestPathsNearTheOwnPages(t *testing.T) {
	a, r := one(t)
	admin := r.user("admin", user.SystemPrivilegedGroup)
	for _, own := range []string{debugPeersPath, metricsPath} {
		if got := r.get(admin, own); got.code != http.StatusOK || a.count(own) != 0 {
			t.Errorf("%s: %d, the local server was asked %d times", own, got.code, a.count(own))
		}
		for _, near := range []string{
			own + "/", own + "x", strings.TrimSuffix(own, own[len(own)-1:]), "/x" + own, strings.ToUpper(own), "/" + own, own + "/..", own + "%2f", own + ";x",
		} {
			before := len(a.received())
			got := r.get(admin, near)
			if after := len(a.received()); got.code == http.StatusOK || after != before+1 {
				t.Errorf("%s: %d %.100s, the local server was asked %d times", near, got.code, got.body, after-before)
			}
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+r.front+own, bytes.NewReader(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := do(t, admin, request); got.code == http.StatusOK {
			t.Errorf("POST %s: %d", own, got.code)
		}
	}
}

// received returns all requests for callers.
func (a *apiserver) received() []seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}
