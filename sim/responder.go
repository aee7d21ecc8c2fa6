package sim

import (
	"net/http"
	"strconv"

	"github.com/skewproof/skewproof/proxy"
)

// responder is the http.ResponseWriter of a request at the server that serves it. An answer without a length that is not flushed before its
// handler returns is sent as a whole.
type responder struct {
	x       *exchange
	status  int
	begun   bool // the header is on its way
	held    int  // of what was written, not on its way yet
	written int
	taken   *wire // the connection, if the handler has taken it over
}

func (w *responder) Header() http.Header {
	if w.x.answerHeader == nil {
		w.x.answerHeader = make(http.Header, 4)
	}
	return w.x.answerHeader
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
	w.x.said = append(w.x.said, p...)
	w.held += len(p)
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
		x.back(headerBytes, part{status: status, header: header})
	}
	if held := w.held; held > 0 {
		w.held = 0
		x.back(held, part{said: held})
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
		x.back(0, part{breaks: true})
		return
	}
	w.WriteHeader(http.StatusOK)
	if w.begun {
		w.send()
		x.back(0, part{ends: true})
		return
	}
	w.begun = true
	status, header := w.status, w.Header()
	if x.hop >= 0 {
		x.s.history.Hops[x.hop].Status = status
	}
	x.back(headerBytes+w.held, part{status: status, header: header, said: w.held, ends: true})
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

// maxHops ends the way of a request that goes round, and grows with every hop. Where net/http ends it (a header of 1 MiB), after some 17,000 hops,
// says no more, and costs the square of them.
const maxHops = 256

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
	if len(x.request.Header[proxy.HopHeader]) > maxHops {
		x.answer.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
	} else {
		srv.handler.ServeHTTP(&x.answer, x.request)
	}
	aborted = false
}
