package sim

import (
	"net/http"
	"strconv"
)

// responder is the http.ResponseWriter of a request at its server. If the handler returns without a
// flush, the answer is sent as a whole.
type responder struct {
	x       *exchange
	status  int
	begun   bool // the header is on its way
	held    int  // number of bytes that are written but not sent yet
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

// Write fails if the requester no longer waits for the answer, as on a closed connection.
func (w *responder) Write(p []byte) (int, error) {
	if w.x.context.err != nil {
		if w.status >= http.StatusBadRequest {
			return len(p), nil // no error: a handler that writes an error would log it, which says nothing new
		}
		return 0, errReset
	}
	w.WriteHeader(http.StatusOK)
	w.x.said = append(w.x.said, p...)
	w.held += len(p)
	w.written += len(p)
	return len(p), nil
}

// Flush sends everything that is written so far.
func (w *responder) Flush() {
	w.WriteHeader(http.StatusOK)
	w.send()
}

// CloseNotify is a method that the API machinery requires of a writer that it wraps. It is never
// called.
func (w *responder) CloseNotify() <-chan bool { return nil }

// head starts the answer.
func (w *responder) head() part {
	w.begun = true
	w.x.noteStatus(w.status)
	return part{status: w.status, header: w.Header()}
}

// noteStatus records the status of the answer in the hop. A peer that answers 401 has not
// authenticated any user.
func (x *exchange) noteStatus(status int) {
	if x.hop < 0 {
		return
	}
	x.entry.Status = status
	if status == http.StatusUnauthorized && x.parent != nil {
		x.entry.User, x.entry.Groups, x.entry.UID, x.entry.Extra, x.entry.Unauthenticated = "", "", "", "", unauthenticated
	}
	x.amend()
}

// amend writes the entry of the exchange to its hop.
func (x *exchange) amend() {
	hop := &x.s.history.Hops[x.hop]
	hop.Entry = &x.entry
	*hop = x.s.sharing.Hop(*hop)
}

func (w *responder) send() {
	if !w.begun {
		w.x.back(headerBytes, w.head())
	}
	if held := w.held; held > 0 {
		w.held = 0
		w.x.back(held, part{said: held})
	}
}

// end is called when the handler has returned. The answer is aborted if the handler broke it off.
func (w *responder) end(aborted bool) {
	x := w.x
	if x.hop >= 0 {
		hop := &x.s.history.Hops[x.hop]
		hop.End = x.s.loop.Now()
		if hop.Status == 0 {
			x.entry.Status = w.status
			x.amend()
		}
	}
	if w.taken != nil {
		_ = w.taken.Close()
		return
	}
	// net/http breaks off an answer that is shorter than its Content-Length.
	if n := contentLength(w.Header()); n >= 0 && n != int64(w.written) && x.request.Method != http.MethodHead {
		aborted = true
	}
	if aborted {
		x.back(0, part{breaks: true})
		return
	}
	w.WriteHeader(http.StatusOK)
	x.goAway()
	if w.begun {
		w.send()
		x.back(0, part{ends: true})
		return
	}
	p := w.head()
	p.said, p.ends = w.held, true
	x.back(headerBytes+w.held, p)
}

// contentLength returns the value of the Content-Length header; -1 if there is none.
func contentLength(h http.Header) int64 {
	if v := h["Content-Length"]; len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil {
			return n
		}
	}
	return -1
}

// serve handles a request that has arrived, in its own task.
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
