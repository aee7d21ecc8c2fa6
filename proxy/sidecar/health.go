package sidecar

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const readyzPath = "/readyz"

// metricsPath is where the front door serves the sidecar's own metrics. No kube-apiserver serves
// this path: its paths are /metrics and /metrics/slis.
const metricsPath = "/metrics/skewproof-proxy"

// check is one condition of readiness.
type check struct {
	name    string
	holds   func() bool
	trouble string // the reason of a failure, for the admin listener only
}

// checks are the conditions of the sidecar's own readiness.
type checks []check

// outcome runs all checks that are not excluded, and describes each in kube-apiserver's format
// (k8s.io/apiserver, healthz). If reasons is false, the text does not say why a check failed.
func (cs checks) outcome(excluded []string, reasons bool) (text string, ready bool) {
	var b strings.Builder
	ready = true
	for _, c := range cs {
		switch {
		case slices.Contains(excluded, c.name):
			fmt.Fprintf(&b, "[+]%s excluded: ok\n", c.name)
			continue
		case c.holds():
			fmt.Fprintf(&b, "[+]%s ok\n", c.name)
			continue
		case reasons:
			fmt.Fprintf(&b, "[-]%s failed: %s\n", c.name, c.trouble)
		default:
			fmt.Fprintf(&b, "[-]%s failed: reason withheld\n", c.name)
		}
		ready = false
	}
	return b.String(), ready
}

// answerHealth answers like a kube-apiserver's /readyz: "ok", or one line for each check if the
// client asks for the lines or a check failed.
func answerHealth(w http.ResponseWriter, r *http.Request, name, text string, ready bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", cacheControl)
	switch {
	case !ready:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", text, name)
	case r.URL.Query().Has("verbose"):
		fmt.Fprintf(w, "%s%s check passed\n", text, name)
	default:
		fmt.Fprint(w, "ok")
	}
}

// frontReadyz answers /readyz at the front door: the sidecar's own checks, then the local server's
// checks. It asks the local server as the caller, because only the local server knows whether the
// caller may see its checks.
type frontReadyz struct {
	own   checks
	local http.Handler
}

func (f *frontReadyz) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		f.local.ServeHTTP(w, r)
		return
	}
	text, ready := f.own.outcome(r.URL.Query()["exclude"], false)
	if ready && !r.URL.Query().Has("verbose") {
		f.local.ServeHTTP(w, r)
		return
	}
	local := &bufferedAnswer{header: http.Header{}}
	f.local.ServeHTTP(local, r)
	switch local.status {
	case http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable: // passed, failed, no answer
	default: // 401, 403: the caller may not see any check
		local.send(w)
		return
	}
	answerHealth(w, r, "readyz", text+local.checkLines(), ready && local.status == http.StatusOK)
}

// bufferedAnswer stores an answer instead of sending it.
type bufferedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

const maxBuffered = 1 << 20 // bytes; no list of checks is longer

func (h *bufferedAnswer) Header() http.Header { return h.header }

func (h *bufferedAnswer) WriteHeader(status int) {
	if h.status == 0 && status >= 200 {
		h.status = status
	}
}

func (h *bufferedAnswer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if h.body.Len()+len(p) > maxBuffered {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxBuffered)
	}
	return h.body.Write(p)
}

func (h *bufferedAnswer) send(w http.ResponseWriter) {
	for key, values := range h.header {
		w.Header()[key] = values
	}
	w.WriteHeader(h.status)
	_, _ = w.Write(h.body.Bytes()) // fails only with the connection
}

// checkLines returns the lines about single checks. If there are none, it returns one line for all
// checks.
func (h *bufferedAnswer) checkLines() string {
	var b strings.Builder
	for line := range strings.Lines(h.body.String()) {
		if strings.HasPrefix(line, "[") {
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	switch {
	case b.Len() > 0:
		return b.String()
	case h.status == http.StatusOK:
		return "[+]local-readyz ok\n"
	}
	return "[-]local-readyz failed: reason withheld\n"
}

// newAdminServer returns the server of the second listener. It serves the sidecar's own metrics,
// peers and health.
func newAdminServer(own checks, debug, metrics http.Handler) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET "+debugPeersPath, debug)
	mux.HandleFunc("GET "+readyzPath, func(w http.ResponseWriter, r *http.Request) {
		text, ready := own.outcome(r.URL.Query()["exclude"], true)
		answerHealth(w, r, "readyz", text, ready)
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) {
		answerHealth(w, r, "livez", "[+]ping ok\n", true)
	})
	return &http.Server{
		Handler:           loopbackHost(mux),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
}

// loopbackHost refuses requests whose Host is not a loopback address. Otherwise a web page whose
// name resolves to 127.0.0.1 (DNS rebinding) could read this listener through a local browser.
func loopbackHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip, err := netip.ParseAddr(host)
		if host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "ask for localhost, or for a loopback address", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
