package sidecar

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A pod behind the proxy subresource can send more headers than an HTTP/2 client accepts. They
// break the connection. So other requests must not use this connection.
func TestPodCannotBreakSharedConnections(t *testing.T) {
	const (
		watched = "/api/v1/pods?watch=true"
		pod     = "/api/v1/namespaces/n/pods/p/proxy/"
	)
	event := make(chan struct{})
	far := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, pod) {
			for i := range 400000 {
				w.Header()[fmt.Sprintf("A%d", i)] = []string{"x"}
			}
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-event
		_, _ = io.WriteString(w, "event")
	}))
	far.EnableHTTP2 = true
	far.StartTLS()
	defer far.Close()
	authorities := x509.NewCertPool()
	authorities.AddCert(far.Certificate())
	through := newTransport(localDial, 0, func() *tls.Config { return &tls.Config{RootCAs: authorities, ServerName: "example.com"} })
	defer through.close()
	ask := func(ctx context.Context, path string) (answer *http.Response, err error) {
		withInfo(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			answer, err = through.RoundTrip(r)
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, far.URL+path, nil))
		return answer, err
	}
	watch, err := ask(t.Context(), watched)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if answer, err := ask(ctx, pod); err == nil {
		answer.Body.Close()
	}
	close(event)
	if got, err := io.ReadAll(watch.Body); err != nil || string(got) != "event" {
		t.Errorf("the watch of another user: %q, %v; want its event", got, err)
	}
}
