package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A client may repeat a request only if it was not carried out, or if a repetition changes nothing.
// The test checks this after each kind of error, for each method.
func TestRetryAfterByMethodAndError(t *testing.T) {
	safe := []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	others := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodTrace, "get", "GETS", "HEA"}
	large := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusRequestHeaderFieldsTooLarge}}
	const never, ifSafe, always = "never", "if safe", "always"
	for _, c := range []struct {
		name string
		err  error
		code int
		when string
	}{
		{"connection refused", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, 503, always},
		{"no connection in time", &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}, 503, always},
		{"wrapped", fmt.Errorf("connect: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}), 503, always},
		{"reset while it was sent", &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}, 503, ifSafe},
		{"reset while it was answered", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, 503, ifSafe},
		{"refused in TLS", &net.OpError{Op: "remote error", Err: tls.AlertError(42)}, 503, ifSafe},
		{"another operation with that word", &net.OpError{Op: "dialled", Err: io.EOF}, 503, ifSafe},
		{"closed", io.EOF, 503, ifSafe},
		{"cut off", io.ErrUnexpectedEOF, 503, ifSafe},
		{"no answer in time", context.DeadlineExceeded, 503, ifSafe},
		{"any other", errors.New("http2: client connection lost"), 503, ifSafe},
		{"our credentials", errOwnCredentials, 503, always},
		{"our credentials, wrapped", fmt.Errorf("%w: 401", errOwnCredentials), 503, always},
		{"refused before it was sent", large, http.StatusRequestHeaderFieldsTooLarge, never},
	} {
		l := newLocal(mustURL(t, "https://127.0.0.1:1"), fakeTransport(func(*http.Request) (*http.Response, error) { return nil, c.err }),
			&headerNames{own: standardNames}, slog.New(slog.DiscardHandler))
		for i, method := range append(safe, others...) {
			got := httptest.NewRecorder()
			l.ServeHTTP(got, httptest.NewRequest(method, common, nil))
			want := ""
			if c.when == always || c.when == ifSafe && i < len(safe) {
				want = "1"
			}
			if retry := got.Header().Get("Retry-After"); got.Code != c.code || retry != want {
				t.Errorf("%s, %s: %d, Retry-After %q; want %d, %q", c.name, method, got.Code, retry, c.code, want)
			}
			if strings.Contains(got.Body.String(), "127.0.0.1") || c.code == 503 && strings.Contains(got.Body.String(), c.err.Error()) {
				t.Errorf("%s, %s: the client gets %s", c.name, method, got.Body)
			}
		}
	}
}

// A client that has closed its connection gets no answer: the sidecar closes the connection.
func TestClientsThatLeftAreNotAnswered(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, c := range map[string]struct {
		ctx context.Context
		err error
	}{
		"it left":                  {left, io.EOF},
		"the attempt was canceled": {t.Context(), fmt.Errorf("send: %w", context.Canceled)},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			l := newLocal(mustURL(t, "https://127.0.0.1:1"), fakeTransport(func(*http.Request) (*http.Response, error) { return nil, c.err }),
				&headerNames{own: standardNames}, slog.New(slog.DiscardHandler))
			got := httptest.NewRecorder()
			func() {
				defer func() {
					if r := recover(); r != http.ErrAbortHandler {
						t.Errorf("%s, %s: panic %v, want %v", name, method, r, http.ErrAbortHandler)
					}
				}()
				l.ServeHTTP(got, httptest.NewRequest(method, common, nil).WithContext(c.ctx))
			}()
			if got.Body.Len() > 0 || len(got.Header()) > 0 {
				t.Errorf("%s, %s: answered %v %s", name, method, got.Header(), got.Body)
			}
		}
	}
}
