package sidecar

import (
	"io"
	"net/http"
	"time"
)

// bodyTimeout is how long a client may take to send a request's body: as long as a kube-apiserver gives a request in all
// (--request-timeout). Without it whoever sends slowly holds a place at a peer, and memory, for as long as it likes.
const bodyTimeout = time.Minute

// limitBodyTime ends the reading of a body that takes longer. What may last goes on as long as it likes: an upload through a proxy subresource is
// a matter between the client and the pod or node. To ask for another protocol is no way out: such a request has no body.
func limitBodyTime(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody || longRunning(r) {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		if err := control.SetReadDeadline(time.Now().Add(within)); err != nil {
			http.Error(w, "this connection cannot be bounded in time", http.StatusInternalServerError)
			return
		}
		r.Body = &timedBody{r.Body, control}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline once the body is there: the answer may take as long as it likes, and that the client is still there
// is found out by reading.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{}) // fails only where setting it would have
	}
	return n, err
}
