package sidecar

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
)

// A kube-apiserver answers some requests before it authenticates the caller. Here this is a request
// with an invalid timeout. After such an answer, the sidecar must not show merged discovery.
func TestAnswersBeforeAuthorizationDoNotShowMergedDiscovery(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for name, by := range map[string]*http.Client{"nobody": p.client(nil, true), "alice": p.user("alice")} {
		for _, path := range []string{"/apis", "/apis/", "/api", "/openapi/v3", "/apis/new.example", "/apis/new.example/v2"} {
			for _, query := range []string{"?timeout=x", "?timeout=5"} {
				got := p.atA.get(by, path+query)
				if got.code != http.StatusBadRequest || strings.Contains(got.body, "novelties") || strings.Contains(got.body, `"new.example"`) {
					t.Errorf("%s at %s%s: %d %s; want the local server's 400", name, path, query, got.code, got.body)
				}
			}
		}
	}
}

type answersWith int

func (code answersWith) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(code), Header: http.Header{"Retry-After": {"7"}}, Body: io.NopCloser(strings.NewReader("the local server's"))}, nil
}

// The authorizer passes a request on only after a status that a kube-apiserver sends after
// authorization.
func TestStatusesThatOpenTheGate(t *testing.T) {
	opens := []int{http.StatusOK, http.StatusNotModified, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable}
	merged := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "merged") })
	for code := 100; code < 600; code++ {
		gate := &discoveryAuthorizer{proxy: merged, merges: true, local: newLocal(&url.URL{Scheme: "https", Host: "local.test"}, answersWith(code), &headerNames{own: standardNames}, slog.New(slog.DiscardHandler))}
		got := httptest.NewRecorder()
		gate.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/apis", nil))
		want := slices.Contains(opens, code)
		final := code >= 200 // a status below 200 is not the final answer, and the recorder does not store it
		if opened := got.Body.String() == "merged"; opened != want || !want && final && (got.Code != code || got.Header().Get("Retry-After") != "7") {
			t.Errorf("%d: opened %t, answered %d; want opened %t, else the local server's answer", code, opened, got.Code, want)
		}
	}
}

// The authorizer must ask the local server whenever the handler would answer with a merged
// document. So both must read hop headers in the same way.
func TestAuthorizerAndHandlerAgreeOnHops(t *testing.T) {
	for _, c := range []struct {
		header, value string
		merged        bool
	}{
		{proxy.HopHeader, "true", false}, {proxy.HopHeaderPublished, "", true}, {proxy.HopHeaderPublished, "false", true},
		{proxy.HopHeaderPublished, "x", true}, {proxy.HopHeaderPublished, "true", false}, {proxy.HopHeaderPublished, " TRUE ", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/apis", nil)
		r = r.WithContext(context.WithValue(r.Context(), fromPeerKey{}, true))
		r.Header.Set(c.header, c.value)
		if got := (&discoveryAuthorizer{}).mayBeMerged(r); got != c.merged {
			t.Errorf("%s: %q from a peer: merged %t, want %t", c.header, c.value, got, c.merged)
		}
		// Upstream's handler reads the hop header of resource requests only.
		if !(&discoveryAuthorizer{trustsAnyHop: true}).mayBeMerged(r) {
			t.Errorf("%s: %q from a peer, where any hop is trusted: merged false, want true", c.header, c.value)
		}
	}
}

// If the sidecar cannot learn whether a caller may see discovery, it shows merged discovery to no
// caller. The answer says whose fault this is.
func TestGateStaysClosedAfterAnError(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	timedOut, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for name, c := range map[string]struct {
		ctx        context.Context
		err        error
		code       int // 0: the connection is aborted
		retryAfter bool
	}{
		"no connection":                        {t.Context(), &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, http.StatusServiceUnavailable, true},
		"broken off":                           {t.Context(), io.ErrUnexpectedEOF, http.StatusServiceUnavailable, true}, // a GET may be repeated
		"a broken certificate":                 {t.Context(), &tls.CertificateVerificationError{}, http.StatusServiceUnavailable, true},
		"own credentials":                      {t.Context(), fmt.Errorf("x: %w", errOwnCredentials), http.StatusServiceUnavailable, true},
		"too many":                             {t.Context(), errTooManyAlone, http.StatusTooManyRequests, true},
		"names have changed":                   {t.Context(), errNamesChanged, http.StatusServiceUnavailable, true},
		"large headers":                        {t.Context(), &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestHeaderFieldsTooLarge}}, http.StatusRequestHeaderFieldsTooLarge, false},
		"out of time":                          {timedOut, context.DeadlineExceeded, http.StatusGatewayTimeout, false},
		"the client has closed its connection": {ended, context.Canceled, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			merged := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the merged document was sent") })
			gate := &discoveryAuthorizer{proxy: merged, merges: true, local: newLocal(&url.URL{Scheme: "https", Host: "local.test"},
				fakeTransport(func(*http.Request) (*http.Response, error) { return nil, c.err }), &headerNames{own: standardNames}, slog.New(slog.DiscardHandler))}
			w := httptest.NewRecorder()
			defer func() {
				if aborted := recover() == http.ErrAbortHandler; aborted != (c.code == 0) {
					t.Errorf("aborted %t", aborted)
				}
				if c.code != 0 && (w.Code != c.code || (w.Header().Get("Retry-After") != "") != c.retryAfter) {
					t.Errorf("%d %v %s, want %d", w.Code, w.Header(), w.Body, c.code)
				}
			}()
			withInfo(gate).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/apis", nil).WithContext(c.ctx))
		})
	}
}
