package balancer

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// serveTLS starts a server that answers with its name and reports whether it is healthy.
func serveTLS(t *testing.T, name string, healthy bool) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && !healthy {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// testPool verifies no certificate, because the servers' certificates have no common authority.
func testPool(t *testing.T) *Pool {
	return NewPool(&http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, t.Logf)
}

func TestOrder(t *testing.T) {
	p := testPool(t)
	if got := p.order(); len(got) != 0 {
		t.Errorf("no backends: got %v", got)
	}
	good, bad, other := serveTLS(t, "good", true), serveTLS(t, "bad", false), serveTLS(t, "other", true)
	addresses := []string{bad, good, other}
	p.Set(addresses)
	if got := p.order(); len(got) != 3 {
		t.Errorf("before any check every one is tried, got %v", got)
	}
	p.checkAll(t.Context())
	counts := map[string]int{}
	for range 4 {
		got := p.order()
		if len(got) != 2 || slices.Contains(got, bad) {
			t.Fatalf("got %v of which %s is not healthy", got, bad)
		}
		counts[got[0]]++
	}
	if counts[good] == 0 || counts[other] == 0 {
		t.Errorf("they do not take turns: %v", counts)
	}
	// One failed check may be an accident; two count as unhealthy.
	p.record(good, io.EOF)
	if got := p.order(); !slices.Contains(got, good) {
		t.Errorf("after one failed check: got %v", got)
	}
	p.record(good, io.EOF)
	if got := p.order(); !slices.Equal(got, []string{other}) {
		t.Errorf("after two failed checks: got %v, want %s", got, other)
	}
	p.Set([]string{good, other})
	if got := p.order(); !slices.Equal(got, []string{other}) {
		t.Errorf("those that stay keep their health: got %v", got)
	}
}

// Servers may refuse anonymous requests. The checks have the credentials of the transport, and a
// pool whose checks are refused says so once for each server.
func TestServersThatRefuseAnonymousRequests(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	for certificates, want := range map[*[]tls.Certificate]bool{{}: false, &server.TLS.Certificates: true} {
		config := &tls.Config{InsecureSkipVerify: true, Certificates: *certificates}
		p := NewPool(&http.Transport{DisableKeepAlives: true, TLSClientConfig: config}, t.Logf)
		var refused []string
		p.Refused = func(address string, err error) { refused = append(refused, address+": "+err.Error()) }
		p.Set([]string{address})
		p.checkAll(t.Context())
		p.checkAll(t.Context())
		if healthy := p.backends[0].healthy(); healthy != want || len(refused) != map[bool]int{true: 0, false: 1}[want] {
			t.Errorf("with %d certificates: healthy %t, want %t; refused: %q", len(*certificates), healthy, want, refused)
		}
	}
}
