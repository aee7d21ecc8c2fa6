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
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"k8s.io/apiserver/pkg/authentication/user"
)

// traced does what a tracing transport does before it fails.
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
		"a transport that does not say": {func(context.Context) error { return broken }, Undecided, "the connection broke before it answered"},
		"a dial that failed":            {func(context.Context) error { return fmt.Errorf("x: %w", refusesConnection()) }, NotDelivered, "it could not be reached"},
		"its own word":                  {func(context.Context) error { return fmt.Errorf("x: %w", undelivered{broken}) }, NotDelivered, "it could not be reached"},
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
		"an alert": {func(ctx context.Context) error {
			traced(ctx, false)
			return &net.OpError{Op: "remote error", Err: tls.AlertError(42)}
		}, NotDelivered, "it broke the TLS connection off"},
		"an alert that came late": {func(ctx context.Context) error {
			traced(ctx, true)
			return &net.OpError{Op: "remote error", Err: tls.AlertError(42)}
		}, Undecided, "it broke the TLS connection off"},
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
			if retry := got.Header().Get("Retry-After"); (retry != "") != (c.outcome == NotDelivered) {
				t.Errorf("Retry-After %q after %s", retry, c.outcome)
			}
		})
	}
}

// The outcomes that net/http really has.
func TestOutcomesOfARealTransport(t *testing.T) {
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
		"nobody listens":               {nobody, "a not-delivered"},
		"closed before the handshake":  {unused, "a not-delivered"},
		"no TLS":                       {breaksOff(func(c net.Conn) { c.Read(make([]byte, 1)); io.WriteString(c, "HTTP/1.1 400 no\r\n\r\n") }), "a not-delivered"},
		"closed before it answered":    {address(far), "a undecided"},
		"an address that is no such":   {"127.0.0.1:no", "a not-delivered"},
		"closed in between, two times": {address(far), "a undecided"},
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

// alarm is a clock whose only timer rings when told.
type alarm struct {
	mu      sync.Mutex
	set     []time.Duration
	ring    func()
	stopped int
}

func (a *alarm) afterFunc(d time.Duration, f func()) func() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set = append(a.set, d)
	rang := false
	a.ring = func() { rang = true; f() }
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.stopped++
		return !rang
	}
}

func TestAttemptTimeout(t *testing.T) {
	t.Run("goes to the next peer", func(t *testing.T) {
		var clock alarm
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Host, "b.") {
				return says(200, "b"), nil
			}
			clock.ring()
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "b" {
			t.Errorf("%d %s, want b's answer", got.Code, got.Body)
		}
		if diff := cmp.Diff([]string{"a undecided", "b answered"}, s.seen.outcomes()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if got := s.seen.attempts[0].Err; got != errNoAnswerInTime {
			t.Errorf("the attempt failed with %v, want %v", got, errNoAnswerInTime)
		}
	})
	t.Run("rings when the answer is just there", func(t *testing.T) {
		var clock alarm
		closed := false
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			clock.ring()
			answer := says(200, "late")
			answer.Body = closeFunc{answer.Body, func() { closed = true }}
			return answer, nil
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		if got := s.ask("GET", gadgetsPath, ""); got.Code != 503 || !closed {
			t.Errorf("%d %s, body closed: %v; want 503, since reading the body would fail", got.Code, got.Body, closed)
		}
	})
	t.Run("rings too late to be stopped, when the answer is there", func(t *testing.T) {
		// A timer's function runs on a goroutine of its own: it can be too late to stop it, and too early for it to have done anything.
		var ring func()
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			answer := says(200, "")
			answer.Body = io.NopCloser(io.MultiReader(readerFunc(func([]byte) (int, error) {
				ring()
				return 0, errorOr(r.Context().Err(), io.EOF)
			}), strings.NewReader("whole")))
			return answer, nil
		}), func(c *Config) {
			c.AfterFunc = func(_ time.Duration, f func()) func() bool { ring = f; return func() bool { return false } }
		})
		if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "whole" {
			t.Errorf("%d %s, want the answer that came before the time was over", got.Code, got.Body)
		}
	})
	t.Run("does not cut the body off", func(t *testing.T) {
		var clock alarm
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			answer := says(200, "")
			answer.ContentLength = -1
			answer.Body = io.NopCloser(io.MultiReader(readerFunc(func([]byte) (int, error) {
				if r.Context().Err() != nil || clock.stopped != 1 {
					t.Errorf("while the body is read: context %v, timers stopped %d", r.Context().Err(), clock.stopped)
				}
				return 0, io.EOF
			}), strings.NewReader("whole")))
			return answer, nil
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "whole" {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
	t.Run("waits for a slow client", func(t *testing.T) {
		var clock alarm
		reader, writer := io.Pipe()
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			b := make([]byte, 4)
			if n, err := r.Body.Read(b); err != nil || n != 4 {
				t.Errorf("read %d, %v", n, err)
			}
			clock.ring() // something came meanwhile
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r.Body.Read(b)
			}()
			until(t, "the client to be waited for", func() bool { _, waiting := r.Body.(*bodyReader).body.progress(); return waiting })
			clock.ring() // nothing came, because the client does not send
			if r.Context().Err() != nil {
				t.Error("given up while the client was sending")
			}
			writer.Write([]byte("body"))
			<-ended
			clock.ring() // something came meanwhile
			if r.Context().Err() != nil {
				t.Error("given up before the peer had its time")
			}
			clock.ring() // now it is the peer
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		go writer.Write([]byte("slow"))
		s.serve(httptest.NewRequest("POST", gadgetsPath, reader))
		if diff := cmp.Diff([]string{"a undecided"}, s.seen.outcomes()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if want := slices.Repeat([]time.Duration{10 * time.Second}, 4); !slices.Equal(clock.set, want) {
			t.Errorf("timers %v, want %v", clock.set, want)
		}
	})
	for target, want := range map[string][]time.Duration{
		gadgetsPath:                 {10 * time.Second},
		gadgetsPath + "?watch=true": {10 * time.Second},
		"/api/v1/namespaces/n/pods/p/log?follow=true": nil,
		"/api/v1/namespaces/n/pods/p/proxy/x":         nil,
		"/api/v1/namespaces/n/pods/p/exec":            nil,
	} {
		t.Run(target, func(t *testing.T) {
			var clock alarm
			sub := func(name string) Resource { return Resource{Version: "v1", Resource: "pods", Subresource: name} }
			s := newShell(t, Reference(), []Event{LocalFetched{At: epoch}, PeerAppeared{ID: "a"}, PeerAddress{"a", "a.test:1"}, Fetched{At: epoch, Results: []FetchResult{
				{ID: "a", Roots: [roots]RootResult{{Groups: groups(sub("log"), sub("proxy"), sub("exec"))}, {Groups: groups(gadget)}}},
			}}, Synced{}}, transportFunc(func(r *http.Request) (*http.Response, error) { return says(200, "peer"), nil }),
				func(c *Config) { c.AfterFunc = clock.afterFunc })
			if got := s.ask("GET", target, ""); got.Body.String() != "peer" {
				t.Fatalf("%d %s, want the peer's answer", got.Code, got.Body)
			}
			if diff := cmp.Diff(want, clock.set); diff != "" {
				t.Errorf("timers (-want +got):\n%s", diff)
			}
		})
	}
}

// errorOr is the first error that is one.
func errorOr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

type closeFunc struct {
	io.Reader
	close func()
}

func (c closeFunc) Close() error { c.close(); return nil }

func TestInFlightIsBounded(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 2
	held := make(chan struct{})
	began := make(chan string, 10)
	s := newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		answer := says(200, "")
		answer.Body = closeFunc{io.MultiReader(readerFunc(func([]byte) (int, error) { <-held; return 0, io.EOF })), func() {}}
		answer.ContentLength = -1
		began <- r.URL.RequestURI()
		return answer, nil
	}))
	var running sync.WaitGroup
	start := func(target string) {
		running.Go(func() { s.ask("GET", target, "") })
		if got := <-began; got != target {
			t.Errorf("began %s, want %s", got, target)
		}
	}
	start(gadgetsPath + "/1")
	start(gadgetsPath + "/2")
	got := s.ask("POST", gadgetsPath, "x")
	if got.Code != 503 || !strings.Contains(got.Body.String(), "too many requests") || got.Header().Get("Retry-After") == "" {
		t.Errorf("the third: %d %v %s, want 503 after which anything may be repeated", got.Code, got.Header(), got.Body)
	}
	if diff := cmp.Diff([]string{"a answered", "a answered", "a busy"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
		t.Error("the peer is avoided though it is only busy")
	}
	start(gadgetsPath + "?watch=1") // streams do not count
	close(held)
	running.Wait()
	if n := len(s.inFlight.peers); n != 0 {
		t.Errorf("%d peers have requests in flight, want none", n)
	}
}

func TestInFlightIsReleasedByAborts(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 1
	s := newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		answer := says(200, "")
		answer.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		return answer, nil
	}))
	for range 3 {
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("ended with %v, want http.ErrAbortHandler", got)
				}
			}()
			s.ask("GET", gadgetsPath, "")
		}()
	}
	if diff := cmp.Diff([]string{"a answered", "a answered", "a answered"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// A slow client's body is not waited for by a peer that has already been given up.
func TestAttemptsShareABodyThatIsStillBeingRead(t *testing.T) {
	reader, writer := io.Pipe()
	first := make(chan struct{})
	read := make(chan string, 1)
	s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.Host, "a.") {
			body := r.Body
			go func() { // as net/http does: still reading when RoundTrip has returned
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
	}), by(&user.DefaultInfo{Name: "alice"}))
	got := s.serve(httptest.NewRequest("POST", gadgetsPath, reader))
	if got.Code != 201 || len(read) == 0 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	if body := <-read; body != "the whole body" {
		t.Errorf("the second peer read %q", body)
	}
}
