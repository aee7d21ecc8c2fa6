package sidecar

import (
	"io"
	"net/http"
	"time"
)

// bodyTimeout is how long a client may take to send a request's body: the --request-timeout of a kube-apiserver. Without it, a client that
// sends slowly could hold a place at a peer, and memory, for ever.
const bodyTimeout = time.Minute

// limitBodyTime sets a deadline for reading the body. It does not for long-running requests: an upload through a proxy subresource is between
// the client and the pod or node. A request for another protocol cannot evade the deadline, because it must have no body.
func limitBodyTime(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody || longRunning(r) {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		if err := control.SetReadDeadline(time.Now().Add(within)); err != nil {
			http.Error(w, "no deadline can be set for reading from this connection", http.StatusInternalServerError)
			return
		}
		r.Body = &timedBody{r.Body, control}
		next.ServeHTTP(w, r)
	})
}

// timedBody removes the deadline at the end of the body: the answer may take longer, and net/http finds out by reading whether the client
// is still there.
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
