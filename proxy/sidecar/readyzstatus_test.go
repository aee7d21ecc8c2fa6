package sidecar

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The answer of /readyz at the front door depends on the sidecar's own checks, on every status of
// the local server, on the method, and on whether the client asks for the lines.
func TestReadyzByStatusOfTheLocalServer(t *testing.T) {
	const lines, said = "[+]ping ok\n[-]etcd failed: reason withheld\n", "the local server's"
	for code := 200; code < 600; code++ {
		for _, body := range []string{said, lines + "readyz check failed"} {
			for _, ready := range []bool{true, false} {
				for _, verbose := range []bool{true, false} {
					for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, "get"} {
						local := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
							w.Header().Set("X-Served-By", "local")
							w.WriteHeader(http.StatusEarlyHints) // not the final answer
							w.WriteHeader(code)
							_, _ = io.WriteString(w, body[:3])
							_, _ = io.WriteString(w, body[3:])
						})
						own := checks{{"own", func() bool { return ready }, "the secret reason"}}
						target := "/readyz"
						if verbose {
							target += "?verbose"
						}
						w := &finalRecorder{ResponseRecorder: httptest.NewRecorder()}
						(&frontReadyz{own: own, local: local}).ServeHTTP(w, httptest.NewRequest(method, target, nil))

						wantCode, wantBody, of := code, body, "local"
						reads := method == http.MethodGet || method == http.MethodHead
						if about := code == 200 || code == 500 || code == 503; reads && about && (!ready || verbose) {
							wantCode, wantBody, of = readyzWith(ready, code == 200, body == said, lines)
						}
						if got := w.Body.String(); w.Code != wantCode || got != wantBody || w.Header().Get("X-Served-By") != of {
							t.Fatalf("%s %s, ready %t, the local server answers %d %q: %d %q of %q; want %d %q of %q",
								method, target, ready, code, body, w.Code, got, w.Header().Get("X-Served-By"), wantCode, wantBody, of)
						}
					}
				}
			}
		}
	}
}

// readyzWith is the answer that has the sidecar's own checks and the local server's.
func readyzWith(ready, local, noLines bool, lines string) (code int, body, of string) {
	code, body = http.StatusInternalServerError, "[-]own failed: reason withheld\n"
	if ready {
		body = "[+]own ok\n"
	}
	switch {
	case !noLines:
		body += lines
	case local:
		body += "[+]local-readyz ok\n"
	default:
		body += "[-]local-readyz failed: reason withheld\n"
	}
	if ready && local {
		return http.StatusOK, body + "readyz check passed\n", ""
	}
	return code, body + "readyz check failed\n", ""
}

// finalRecorder records the final status: [httptest.ResponseRecorder] takes an early one for it.
type finalRecorder struct{ *httptest.ResponseRecorder }

func (w *finalRecorder) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		w.ResponseRecorder.WriteHeader(code)
	}
}

// A check that is excluded counts as good. Only the admin listener says why a check fails.
func TestWhichChecksCount(t *testing.T) {
	for _, c := range []struct {
		a, b     bool
		excluded string
		reasons  bool
		text     string
		ready    bool
	}{
		{true, true, "", false, "[+]a ok [+]b ok", true},
		{true, false, "", false, "[+]a ok [-]b failed: reason withheld", false},
		{false, true, "", true, "[-]a failed: why a [+]b ok", false},
		{false, false, "", true, "[-]a failed: why a [-]b failed: why b", false},
		{false, true, "a", true, "[+]a excluded: ok [+]b ok", true},
		{false, false, "a", false, "[+]a excluded: ok [-]b failed: reason withheld", false},
		{false, false, "a b", false, "[+]a excluded: ok [+]b excluded: ok", true},
		{true, true, "b", false, "[+]a ok [+]b excluded: ok", true},
		{false, true, "A", false, "[-]a failed: reason withheld [+]b ok", false},
		{true, true, "x", false, "[+]a ok [+]b ok", true},
	} {
		cs := checks{{"a", func() bool { return c.a }, "why a"}, {"b", func() bool { return c.b }, "why b"}}
		text, ready := cs.outcome(strings.Fields(c.excluded), c.reasons)
		if got := strings.TrimSpace(strings.ReplaceAll(text, "\n", " ")); got != c.text || ready != c.ready {
			t.Errorf("%+v: %q, %t", c, got, ready)
		}
	}
}

// The admin listener's answers: "ok", or the lines if the client asks for them or a check fails.
func TestAnswersAboutHealth(t *testing.T) {
	ready := true
	server := newAdminServer(checks{{"own", func() bool { return ready }, "the reason"}}, http.NotFoundHandler(), http.NotFoundHandler())
	for _, c := range []struct {
		target string
		ready  bool
		want   string
	}{
		{"/readyz", true, "200 ok"},
		{"/readyz?verbose", true, "200 [+]own ok\nreadyz check passed\n"},
		{"/readyz", false, "500 [-]own failed: the reason\nreadyz check failed\n"},
		{"/readyz?verbose", false, "500 [-]own failed: the reason\nreadyz check failed\n"},
		{"/readyz?exclude=own", false, "200 ok"},
		{"/readyz?exclude=other&exclude=own&verbose", false, "200 [+]own excluded: ok\nreadyz check passed\n"},
		{"/livez", false, "200 ok"},
		{"/livez?verbose", false, "200 [+]ping ok\nlivez check passed\n"},
	} {
		ready = c.ready
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+c.target, nil)
		server.Handler.ServeHTTP(w, r)
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != c.want {
			t.Errorf("%s, ready %t: %q, want %q", c.target, c.ready, got, c.want)
		}
		if w.Header().Get("Cache-Control") != cacheControl || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the header is %v", c.target, w.Header())
		}
	}
}
