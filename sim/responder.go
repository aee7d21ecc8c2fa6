package sim

import (
	"net/http"
	"strconv"
)

// responder is the http.ResponseWriter of a request at the server that serves it. An answer without a length that is not flushed before its
// handler returns is sent as a whole.
type responder struct {
	x       *exchange
	header  http.Header
	status  int
	begun   bool // the header is on its way
	held    []byte
	written int
	taken   *wire // the connection, if the handler has taken it over
}

func (w *responder) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header, 4)
	}
	return w.header
}

func (w *responder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Write fails when nobody waits any more, as on a connection that was closed.
func (w *responder) Write(p []byte) (int, error) {
	if w.x.context.err != nil {
		if w.status >= http.StatusBadRequest {
			return len(p), nil // whoever writes errors logs that it cannot, which is no news
		}
		return 0, errReset
	}
	w.WriteHeader(http.StatusOK)
	w.held = append(w.held, p...)
	w.written += len(p)
	return len(p), nil
}

// Flush sends what there is.
func (w *responder) Flush() {
	w.WriteHeader(http.StatusOK)
	w.send()
}

// CloseNotify is what the API machinery looks for in a writer that it wraps. Nobody asks it anything.
func (w *responder) CloseNotify() <-chan bool { return nil }

func (w *responder) send() {
	x := w.x
	if !w.begun {
		w.begun = true
		status, header := w.status, w.Header()
		if x.hop >= 0 {
			x.s.history.Hops[x.hop].Status = status
		}
		x.back(headerBytes, func() { x.status, x.header = status, header })
	}
	if len(w.held) > 0 {
		chunk := w.held
		w.held = nil
		x.back(len(chunk), func() { x.body = append(x.body, chunk...) })
	}
}

// end is called when the handler has returned: aborted, if it broke the answer off.
func (w *responder) end(aborted bool) {
	x := w.x
	if x.hop >= 0 {
		hop := &x.s.history.Hops[x.hop]
		hop.End = x.s.loop.Now()
		if hop.Status == 0 {
			hop.Status = w.status
		}
	}
	if w.taken != nil {
		_ = w.taken.Close()
		return
	}
	// net/http breaks off an answer that is shorter than was announced.
	if n := contentLength(w.Header()); n >= 0 && n != int64(w.written) && x.request.Method != http.MethodHead {
		aborted = true
	}
	if aborted {
		x.back(0, func() { x.broken(errReset) })
		return
	}
	w.WriteHeader(http.StatusOK)
	if w.begun {
		w.send()
		x.back(0, func() { x.ended = true })
		return
	}
	w.begun = true
	status, header, held := w.status, w.Header(), w.held
	if x.hop >= 0 {
		x.s.history.Hops[x.hop].Status = status
	}
	x.back(headerBytes+len(held), func() { x.status, x.header, x.body, x.ended = status, header, held, true })
}

// contentLength is what the header says, -1 if it says nothing.
func contentLength(h http.Header) int64 {
	if v := h["Content-Length"]; len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil {
			return n
		}
	}
	return -1
}

// serve handles a request that has arrived, in a task of its own.
func (srv *server) serve(x *exchange) {
	aborted := true
	defer func() {
		x.finished()
		r := recover()
		if r != nil && r != http.ErrAbortHandler { //nolint:errorlint // net/http compares likewise
			panic(r)
		}
		if srv.incarnation == x.life && srv.gate.Open() {
			x.answer.end(aborted)
		}
	}()
	x.record()
	srv.handler.ServeHTTP(&x.answer, x.request)
	aborted = false
}
