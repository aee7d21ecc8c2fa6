package sidecar

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// limitBodyTime sets a deadline for reading the body. Without it, a slow client could hold memory,
// and a place at a peer, for ever. The deadline is that of the request. A stream has no such
// deadline (see limitRequestTime). For a stream, the deadline is renewed whenever bytes arrive, and
// it is valid only until the answer begins: the answer proves that the caller may do this. An
// Upgrade header does not avoid the deadline.
func limitBodyTime(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w), within: within, renew: longRunning(r)}
		if ends, ok := r.Context().Deadline(); ok && !body.renew {
			body.within = min(within, time.Until(ends))
		}
		if err := body.begin(); err != nil {
			w.Header().Set("Cache-Control", cacheControl)
			http.Error(w, "cannot set a read deadline on this connection", http.StatusInternalServerError)
			return
		}
		defer body.end()
		r.Body = body
		if body.renew {
			w = &answering{w, body}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body with a deadline. It removes the deadline at the end of the body, because the
// answer may take longer, and because net/http keeps reading to notice when the client leaves.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	within  time.Duration
	renew   bool // renew the deadline whenever bytes arrive, until lift

	mu     sync.Mutex
	lifted bool
}

func (b *timedBody) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lifted {
		return nil
	}
	return b.control.SetReadDeadline(time.Now().Add(b.within))
}

// end stops the body from using the ResponseWriter after the handler has returned. A transport may
// still read the body then, and net/http would panic.
func (b *timedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lifted = true
}

// lift removes the deadline and keeps it from being set again.
func (b *timedBody) lift() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.lifted {
		b.lifted = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.lift()
	case b.renew && n > 0:
		_ = b.begin()
	}
	return n, err
}

// answering lifts the deadline of a body when the answer begins.
type answering struct {
	http.ResponseWriter
	body *timedBody
}

func (w *answering) WriteHeader(code int) {
	if code >= 200 {
		w.body.lift()
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *answering) Write(p []byte) (int, error) {
	w.body.lift()
	return w.ResponseWriter.Write(p)
}

func (w *answering) Flush() {
	w.body.lift()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // without it, net/http flushes later
}

// Hijack takes over the connection, which ends its deadlines (net/http, Hijacker).
func (w *answering) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.body.lift()
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

func (w *answering) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeTimeout is how long a client may take to read one part of an answer, of at most writePart
// bytes. Only time in which there is something to read counts, so a watch without events lasts.
// Without the timeout, HTTP/2 clients could hold an answer at no cost, with a window of zero.
const (
	writeTimeout = 30 * time.Second
	writePart    = 32 << 10
)

// limitWriteTime ends answers that the client does not read. Upgraded connections have no limit:
// they hold only two small buffers, and a user may pause a terminal.
func limitWriteTime(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paced := &pacedWriter{ResponseWriter: w, within: within}
		if r.ProtoMajor == 1 { // the deadline of the request before, see end
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		}
		defer paced.end()
		next.ServeHTTP(paced, r)
	})
}

// pacedWriter bounds the time of each write.
type pacedWriter struct {
	http.ResponseWriter
	within   time.Duration
	timer    *time.Timer
	wrote    bool
	hijacked bool

	mu      sync.Mutex // held by the timer while it uses the ResponseWriter
	writing bool
}

// timed runs a write. If the write takes too long, it fails, and all later writes fail too.
func (w *pacedWriter) timed(write func() (int, error)) (int, error) {
	w.wrote = true
	w.set(true)
	defer w.set(false) // from now on, the timer does nothing, even if it has rung
	if w.timer == nil {
		w.timer = time.AfterFunc(w.within, w.expire)
	} else {
		w.timer.Reset(w.within)
	}
	defer w.timer.Stop()
	return write()
}

func (w *pacedWriter) set(writing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = writing
}

func (w *pacedWriter) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(-time.Second))
	}
}

func (w *pacedWriter) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0 && err == nil; first = false {
		var m int
		part := p[:min(len(p), writePart)]
		m, err = w.timed(func() (int, error) { return w.ResponseWriter.Write(part) })
		n += m
		p = p[len(part):]
	}
	return n, err
}

// WriteHeader bounds the time of informational answers. Of other answers, the header waits for the
// first part of the body.
func (w *pacedWriter) WriteHeader(code int) {
	if code >= http.StatusOK {
		w.ResponseWriter.WriteHeader(code)
		return
	}
	_, _ = w.timed(func() (int, error) {
		w.ResponseWriter.WriteHeader(code)
		return 0, nil
	})
}

func (w *pacedWriter) Flush() { _ = w.FlushError() }

// FlushError is for [http.ResponseController].
func (w *pacedWriter) FlushError() error {
	_, err := w.timed(func() (int, error) { return 0, http.NewResponseController(w.ResponseWriter).Flush() })
	return err
}

func (w *pacedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = err == nil
	return conn, rw, err
}

// end sets a deadline for the bytes that net/http sends after the handler has returned.
func (w *pacedWriter) end() {
	if w.wrote && !w.hijacked {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.within))
	}
}

func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
