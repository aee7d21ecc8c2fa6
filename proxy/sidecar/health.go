package sidecar

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// check is one thing that must be well. Its error is for the log and, on the admin listener, for people.
type check struct {
	name string
	run  func() error
}

// checks are what the sidecar itself needs to be ready.
type checks []check

// outcome runs the checks but those excluded, and describes each in kube-apiserver's format (k8s.io/apiserver, healthz). Reasons are withheld
// from the public.
func (cs checks) outcome(excluded []string, reasons bool) (text string, well bool) {
	var b strings.Builder
	well = true
	for _, c := range cs {
		if slices.Contains(excluded, c.name) {
			fmt.Fprintf(&b, "[+]%s excluded: ok\n", c.name)
			continue
		}
		err := c.run()
		switch {
		case err == nil:
			fmt.Fprintf(&b, "[+]%s ok\n", c.name)
			continue
		case reasons:
			fmt.Fprintf(&b, "[-]%s failed: %v\n", c.name, err)
		default:
			fmt.Fprintf(&b, "[-]%s failed: reason withheld\n", c.name)
		}
		well = false
	}
	return b.String(), well
}

// answerHealth answers like a kube-apiserver's /readyz: "ok", or each check on its own line where that is asked for or something failed.
func answerHealth(w http.ResponseWriter, r *http.Request, name, text string, well bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache, private")
	_, verbose := r.URL.Query()["verbose"]
	switch {
	case !well:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", text, name)
	case verbose:
		fmt.Fprintf(w, "%s%s check passed\n", text, name)
	default:
		fmt.Fprint(w, "ok")
	}
}

// frontReadyz is /readyz at the front door: the sidecar's own checks, and then the local server's, asked as the caller, who may
// read the latter only if the local server says so. Its subpaths other than the sidecar's checks are the local server's.
type frontReadyz struct {
	own   checks
	local http.Handler
}

const readyzPath = "/readyz"

func (f *frontReadyz) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		f.local.ServeHTTP(w, r)
		return
	}
	text, well := f.own.outcome(r.URL.Query()["exclude"], false)
	if well {
		if _, verbose := r.URL.Query()["verbose"]; !verbose {
			f.local.ServeHTTP(w, r)
			return
		}
	}
	local := &bufferedAnswer{header: http.Header{}}
	f.local.ServeHTTP(local, r)
	switch local.status {
	case http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable: // passed, failed, could not be asked
	default: // 401, 403: this caller is told nothing
		local.send(w)
		return
	}
	well = well && local.status == http.StatusOK
	answerHealth(w, r, "readyz", text+local.checkLines(), well)
}

// bufferedAnswer holds an answer back, as much of it as any list of checks is long.
type bufferedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

const maxBuffered = 1 << 20

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
	// A client that has gone needs no answer.
	_, _ = w.Write(h.body.Bytes())
}

// checkLines are the lines about single checks.
func (h *bufferedAnswer) checkLines() string {
	var b strings.Builder
	for line := range strings.Lines(h.body.String()) {
		if strings.HasPrefix(line, "[") {
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	if b.Len() == 0 {
		sign, word := "[+]", "ok"
		if h.status != http.StatusOK {
			sign, word = "[-]", "failed: reason withheld"
		}
		fmt.Fprintf(&b, "%slocal-readyz %s\n", sign, word)
	}
	return b.String()
}
