package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
)

// traced calls the hooks that a tracing transport calls before it fails.
func traced(ctx context.Context, connected bool) {
	trace := httptrace.ContextClientTrace(ctx)
	trace.GetConn("a.test:6443")
	if connected {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

type undelivered struct{ error }

func (undelivered) NotDelivered() bool { return true }

func TestOutcomes(t *testing.T) {
	const silent = "a transport that does not say"
	broken := errors.New("connection reset by peer: 192.0.2.1:6443")
	for name, c := range map[string]struct {
		fail    func(ctx context.Context) error
		outcome Outcome
		trouble string
	}{
		"no connection": {func(ctx context.Context) error { traced(ctx, false); return broken }, NotDelivered, "it could not be reached"},
		"no connection in time": {func(ctx context.Context) error { traced(ctx, false); return context.DeadlineExceeded },
			NotDelivered, "it could not be reached in time"},
		"a connection that broke": {func(ctx context.Context) error { traced(ctx, true); return broken },
			Undecided, "the connection broke before it answered"},
		"an idle one that had closed, and no other": {func(ctx context.Context) error { traced(ctx, true); traced(ctx, false); return broken },
			NotDelivered, "it could not be reached"},
		silent:               {func(context.Context) error { return broken }, Undecided, "the connection broke before it answered"},
		"a dial that failed": {func(context.Context) error { return fmt.Errorf("x: %w", refusesConnection()) }, NotDelivered, "it could not be reached"},
		"its own word":       {func(context.Context) error { return fmt.Errorf("x: %w", undelivered{broken}) }, NotDelivered, "it could not be reached"},
		"a stream refused": {func(ctx context.Context) error {
			traced(ctx, true)
			return http2.StreamError{Code: http2.ErrCodeRefusedStream}
		},
			NotDelivered, "it could not be reached"},
		"a stream cancelled": {func(ctx context.Context) error {
			traced(ctx, true)
			return http2.StreamError{Code: http2.ErrCodeCancel}
		},
			Undecided, "the connection broke before it answered"},
		"a read that timed out": {func(ctx context.Context) error { traced(ctx, true); return context.DeadlineExceeded }, Undecided, "it did not answer in time"},
		"a certificate": {func(ctx context.Context) error {
			traced(ctx, false)
			return &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
		}, NotDelivered, "its certificate was not accepted"},
		"another name": {func(ctx context.Context) error {
			traced(ctx, false)
			return x509.HostnameError{Certificate: &x509.Certificate{}, Host: "kubernetes.default.svc"}
		}, NotDelivered, "its certificate was not accepted"},
		"no TLS": {func(ctx context.Context) error { traced(ctx, false); return tls.RecordHeaderError{Msg: "HTTP"} },
			NotDelivered, "it does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
				return nil, c.fail(r.Context())
			}))
			got := s.ask("POST", gadgetsPath, "x")
			if diff := cmp.Diff([]string{"a " + c.outcome.String()}, s.seen.outcomes()); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if got.Code != 503 || !strings.Contains(got.Body.String(), "a: "+c.trouble) || strings.Contains(got.Body.String(), "192.0.2.1") {
				t.Errorf("%d %s, want 503 with %q and no address", got.Code, got.Body, c.trouble)
			}
			if retry := got.Header().Get("Retry-After"); retry != "" {
				t.Errorf("Retry-After %q after %s", retry, c.outcome)
			}
			if p := s.store.Table().Peers()[0]; p.EjectedUntil.After(time.Now()) == (name == silent) {
				t.Errorf("avoided until %v; a peer is to blame if a connection was tried", p.EjectedUntil)
			}
		})
	}
}

// The outcomes are the ones that the real net/http has.
func TestOutcomesOfHTTPTransport(t *testing.T) {
	breaksOff := func(after func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				after(c)
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	unused := breaksOff(func(net.Conn) {})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	far := peerServer(t, false, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	for name, c := range map[string]struct{ address, want string }{
		"nobody listens":              {nobody, "a not-delivered"},
		"closed before the handshake": {unused, "a not-delivered"},
		"no TLS":                      {breaksOff(func(c net.Conn) { c.Read(make([]byte, 1)); io.WriteString(c, "HTTP/1.1 400 no\r\n\r\n") }), "a not-delivered"},
		"closed before it answered":   {address(far), "a undecided"},
		"an invalid address":          {"127.0.0.1:no", "a not-delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Reference(), capablePeers(map[ServerID]string{"a": c.address}, "a"), transportTo(t, far, false))
			got := s.ask("POST", gadgetsPath, "x")
			if diff := cmp.Diff([]string{c.want}, s.seen.outcomes()); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%v", diff, s.seen.attempts[0].Err)
			}
			if strings.Contains(got.Body.String(), "127.0.0.1") {
				t.Errorf("names an address: %s", got.Body)
			}
		})
	}
}

// A peer that refuses our certificate says so in the handshake. Under TLS 1.3, the handshake is
// then over for this server, so the peer may have read the request.
func TestPeerRefusesCertificate(t *testing.T) {
	other := peerServer(t, false, nil) // a certificate that the peer's authority has not issued
	for version, outcome := range map[uint16]string{tls.VersionTLS12: "a not-delivered", tls.VersionTLS13: "a undecided"} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var connections sync.WaitGroup
			defer connections.Wait()
			defer l.Close()
			strict := &tls.Config{Certificates: other.TLS.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
			connections.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					connections.Go(func() {
						defer c.Close()
						tls.Server(c, strict).Handshake()
						io.Copy(io.Discard, c) // a connection that is closed with unread bytes is reset, and then the alert is lost
					})
				}
			})
			transport := transportTo(t, other, false)
			transport.TLSClientConfig.Certificates = other.TLS.Certificates
			transport.TLSClientConfig.MaxVersion = version
			s := newShell(t, Reference(), capablePeers(map[ServerID]string{"a": l.Addr().String()}, "a"), transport)
			got := s.ask("POST", gadgetsPath, "x")
			if diff := cmp.Diff([]string{outcome}, s.seen.outcomes()); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%v", diff, s.seen.attempts[0].Err)
			}
			want := []string{"a: it broke the TLS connection off"}
			if version == tls.VersionTLS13 && errors.Is(s.seen.attempts[0].Err, net.ErrClosed) {
				// The handshake ends before the alert arrives. If the transport has closed the connection
				// because of the alert, a write that fails then hides the alert.
				want = append(want, "a: the connection broke before it answered")
			}
			if !slices.ContainsFunc(want, func(text string) bool { return strings.Contains(got.Body.String(), text) }) {
				t.Errorf("%s, want one of %q (%v)", got.Body, want, s.seen.attempts[0].Err)
			}
		})
	}
}

// After the handler has given up a peer, nothing waits for the peer to read a slow client's body.
func TestAttemptsShareUnreadBody(t *testing.T) {
	reader, writer := io.Pipe()
	first := make(chan struct{})
	read := make(chan string, 1)
	s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.Host, "a.") {
			body := r.Body
			go func() { // like net/http: it still reads after RoundTrip has returned
				close(first)
				io.ReadAll(body)
			}()
			<-first
			return nil, refusesConnection()
		}
		go writer.Write([]byte("the whole body"))
		b := make([]byte, 14)
		if _, err := io.ReadFull(r.Body, b); err != nil {
			return nil, err
		}
		read <- string(b)
		return says(201, ""), nil
	}))
	got := s.serve(httptest.NewRequest("POST", gadgetsPath, reader))
	if got.Code != 201 || len(read) == 0 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	if body := <-read; body != "the whole body" {
		t.Errorf("the second peer read %q", body)
	}
}
