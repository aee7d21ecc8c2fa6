package sidecar

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An HTTP/2 connection is busy for a short time after its last request was cancelled. Close must
// close it nevertheless.
func TestCloseEndsBusyConnections(t *testing.T) {
	asked, gone := make(chan string, 1), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Proto
		<-r.Context().Done() // only the end of the connection ends it
		close(gone)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	transport := newTransport(time.Hour, 0, func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities} })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answer, err := transport.RoundTrip(request)
		if err == nil {
			answer.Body.Close()
		}
		answered <- err
	}()
	if protocol := <-asked; protocol != "HTTP/2.0" {
		t.Errorf("asked by %s", protocol)
	}
	transport.close()
	await(t, "the server's side of the connection has ended", func() bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
	if err := <-answered; err == nil {
		t.Error("the request had an answer")
	}
	server.Close()
}
