package traffic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// TestFailureOfRealConnections breaks real connections and checks the recorded failures.
func TestFailureOfRealConnections(t *testing.T) {
	silent := make(chan struct{})
	silence := func(c net.Conn) { // the connection must stay in use, because the garbage collector closes an unused one
		<-silent
		_ = c.Close()
	}
	for _, tt := range []struct {
		name   string
		serve  func(net.Conn) // handles a connection at the server; nil: the server does not listen
		tls    bool
		cancel bool
		want   history.Failure
		status int
	}{
		{name: "nobody listens", want: history.FailureRefused},
		{name: "reset before the handshake", want: history.FailureReset, serve: func(c net.Conn) {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}},
		{name: "closed before the handshake", want: history.FailureReset, serve: func(c net.Conn) { _ = c.Close() }},
		{name: "speaks no TLS", want: history.FailureTLS, serve: func(c net.Conn) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}},
		{name: "certificate of a stranger", want: history.FailureTLS, tls: true, serve: func(c net.Conn) {
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}},
		{name: "no answer until the client gives up", want: history.FailureTimeout, serve: silence},
		{name: "no answer until the run ends", want: history.FailureCanceled, cancel: true, serve: silence},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trusted := newAPIServer(t, func(http.ResponseWriter, *http.Request) {})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			if tt.serve == nil {
				_ = listener.Close()
			} else {
				accepting := listener
				if tt.tls {
					accepting = tls.NewListener(listener, newStranger(t))
				}
				go func() {
					for {
						c, err := accepting.Accept()
						if err != nil {
							return
						}
						go tt.serve(c)
					}
				}()
			}
			record := newLedger()
			clients, err := NewClients([]Target{{Server: "a", URL: "https://" + listener.Addr().String()}},
				[]Identity{{Name: "admin", User: workload.Admin, Config: trusted.config()}}, record)
			if err != nil {
				t.Fatal(err)
			}
			defer clients.Close()

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			timeout := 30 * time.Second
			if tt.want == history.FailureTimeout {
				timeout = 50 * time.Millisecond
			}
			if tt.cancel {
				// This deadline is the run's, not the request's.
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			clients.Send(ctx, "a", of("get", "x"), history.PurposeLoad, timeout)

			op := record.only(t)
			if op.Failure != tt.want || op.Status != 0 || op.Error == "" {
				t.Errorf("failure %q, status %d (%s), want %q", op.Failure, op.Status, op.Error, tt.want)
			}
		})
	}
	close(silent)
}

// newStranger returns the TLS configuration of a server that the client does not trust.
func newStranger(t *testing.T) *tls.Config {
	t.Helper()
	certificate, err := strangerCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}}
}

func TestFailureOfBodyCutShort(t *testing.T) {
	server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status",`))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	record := newLedger()
	connect(t, server, record).ask(t, of("get", "x"))
	op := record.only(t)
	if op.Failure != history.FailureReset || op.Status != http.StatusOK || op.Body != history.BodyNone {
		t.Errorf("failure %q, status %d, body %q (%s), want a reset after the header", op.Failure, op.Status, op.Body, op.Error)
	}
}

func TestClassifyFailure(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeoutCause(t.Context(), 0, errAttemptTimeout)
	defer cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want history.Failure
	}{
		{"the cause is the end of the run, not what it broke", canceled, syscall.ECONNRESET, history.FailureCanceled},
		{"the cause is the request's timeout", expired, context.DeadlineExceeded, history.FailureTimeout},
		{"broken pipe", t.Context(), fmt.Errorf("write: %w", syscall.EPIPE), history.FailureReset},
		{"dial timeout", t.Context(), &net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}, history.FailureTimeout},
		{"unanswered ping", t.Context(), errors.New("http2: client connection lost"), history.FailureTimeout},
		{"GOAWAY", t.Context(), errors.New("http2: server sent GOAWAY and closed the connection"), history.FailureReset},
		{"alert of the peer", t.Context(), errors.New("remote error: tls: certificate required"), history.FailureTLS},
		{"no route", t.Context(), syscall.EHOSTUNREACH, history.FailureOther},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := classifyFailure(tt.ctx, tt.err); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
