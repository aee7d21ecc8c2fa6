package mutants

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"strconv"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// answer is the complete answer of a handler.
type answer struct {
	path   string // path of the request
	status int
	header http.Header
	body   []byte
}

// replace replaces the whole answer.
func (a *answer) replace(status int, contentType, body string) {
	*a = answer{path: a.path, status: status, header: http.Header{"Content-Type": {contentType}}, body: []byte(body)}
}

// unknown replaces the answer with that of a server without a handler for the path.
func (a *answer) unknown() {
	a.replace(http.StatusNotFound, "text/plain; charset=utf-8", "404 page not found\n")
}

const (
	emptyList = `{"kind":"List","apiVersion":"v1","items":[]}`
	failure   = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`
)

// changing returns a handler that calls change on the answers of h before it sends them. A stream
// that has begun is not changed.
func changing(h http.Handler, change func(r *http.Request, a *answer)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := &holder{to: w}
		held.serve(h, r)
		if held.streaming {
			return
		}
		a := &answer{r.URL.Path, max(held.status, http.StatusOK), w.Header().Clone(), held.body}
		change(r, a)
		header := w.Header()
		clear(header)
		maps.Copy(header, a.header)
		header.Set("Content-Length", strconv.Itoa(len(a.body)))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	})
}

// holder holds an answer back.
type holder struct {
	to        http.ResponseWriter
	status    int
	body      []byte
	streaming bool
}

// serve lets a handler answer. If the handler breaks the answer off, holder sends the part that it
// has, so that the client sees a broken answer.
func (h *holder) serve(by http.Handler, r *http.Request) {
	defer func() {
		if why := recover(); why != nil {
			if why == http.ErrAbortHandler && h.status != 0 { // net/http compares likewise
				h.stream()
			}
			panic(why)
		}
	}()
	by.ServeHTTP(h, r)
}

func (h *holder) Header() http.Header { return h.to.Header() }

func (h *holder) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *holder) Write(p []byte) (int, error) {
	if h.streaming {
		return h.to.Write(p)
	}
	h.WriteHeader(http.StatusOK)
	h.body = append(h.body, p...)
	return len(p), nil
}

// Flush starts a stream, unless the answer is an error. Errors stay held back, because a proxy
// flushes every answer without a length.
func (h *holder) Flush() {
	if h.status < http.StatusMultipleChoices {
		h.stream()
	}
}

// stream sends everything held back, and from now on every write.
func (h *holder) stream() {
	if !h.streaming {
		h.streaming = true
		h.to.WriteHeader(max(h.status, http.StatusOK))
		_, _ = h.to.Write(h.body)
	}
	h.to.(http.Flusher).Flush()
}

// Hijack passes the connection on; its data is not changed.
func (h *holder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h.streaming = true
	return http.NewResponseController(h.to).Hijack()
}

// CloseNotify is a method that the API machinery requires of a writer that it wraps.
func (h *holder) CloseNotify() <-chan bool { return nil }

// answering plants a change of the answers of a server to clients.
func answering(change func(r *http.Request, a *answer)) sim.Defects {
	return sim.Defects{Handler: func(_ proxy.ServerID, h http.Handler) http.Handler {
		return changing(h, func(r *http.Request, a *answer) {
			if !fromPeer(r) {
				change(r, a)
			}
		})
	}}
}
