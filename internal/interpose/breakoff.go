package interpose

import (
	"bytes"
	"net/http"

	"github.com/skewproof/skewproof/internal/fault"
)

// breakOff lets an answer end before its body does. The server is asked, and what comes of its answer is its own: the headers as they are, with
// the Content-Length that it gave, if it gave one (most documents are too large for net/http to know theirs in time). So it looks like a server that
// dies while it answers, and unlike one whose answer is complete and happens to be short.
func breakOff(w http.ResponseWriter, r *http.Request, server http.Handler, how fault.DiscoveryFailure) {
	r = r.Clone(r.Context())
	r.Header.Del("If-None-Match") // a 304 has no body that could break off
	answer := &held{header: w.Header()}
	server.ServeHTTP(answer, r)
	w.WriteHeader(answer.status)
	_, _ = w.Write(arrives(how, answer.body.Bytes()))
	_ = http.NewResponseController(w).Flush() // what is not sent by now, the reset would take along
	panic(http.ErrAbortHandler)               // RST_STREAM; over HTTP/1.1 the connection ends
}

// held is an answer that nobody has been sent yet.
type held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *held) Header() http.Header         { return h.header }
func (h *held) Write(p []byte) (int, error) { return h.body.Write(p) }

// WriteHeader skips what is only informational.
func (h *held) WriteHeader(status int) {
	if h.status == 0 && status >= http.StatusOK {
		h.status = status
	}
}

// arrives is how much of a body arrives before the reset.
func arrives(how fault.DiscoveryFailure, body []byte) []byte {
	if how == fault.CutShort {
		return body[:len(body)/2]
	}
	return nil
}
