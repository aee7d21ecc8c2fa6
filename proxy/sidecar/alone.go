package sidecar

import (
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/skewproof/skewproof/proxy/internal/share"
)

// aloneBound bounds the requests that each occupy a connection to the local server. A
// kube-apiserver itself serves 600 requests at a time by default.
const aloneBound = 1000

// bounded bounds the requests of callers that each occupy a connection to the local server (see
// [occupiesConnection]), in total and for each caller. It is the transport of all requests for the
// local server, so that no path and no query avoids the bound. A request has its place until the
// body of the answer is closed. The answer to a stream may last for ever, so a stream has its place
// only until its answer begins: before, it has shown no right to anything. It is safe for
// concurrent use.
type bounded struct {
	http.RoundTripper
	places share.Pool
}

var errTooManyAlone = apierrors.NewTooManyRequests("too many requests of this user are in flight", 1)

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !occupiesConnection(r) {
		return b.RoundTripper.RoundTrip(r)
	}
	seat := callerFrom(r.Context()).seat() // read it once, because the user may become known meanwhile
	if !b.places.Take(seat, 1, aloneBound) {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must
		}
		return nil, errTooManyAlone
	}
	leave := sync.OnceFunc(func() { b.places.Give(seat, 1) })
	answer, err := b.RoundTripper.RoundTrip(r)
	if err != nil || answer.StatusCode == http.StatusSwitchingProtocols || longRunning(r) {
		leave()
		return answer, err
	}
	answer.Body = &leavingBody{answer.Body, leave}
	return answer, nil
}

// leavingBody is the body of an answer. Its end is the end of the request.
type leavingBody struct {
	io.ReadCloser
	leave func()
}

func (b *leavingBody) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}
