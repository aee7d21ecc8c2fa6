package apiserver

import (
	"fmt"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// inProcess asks the server's own handler what it serves, behind all filters and without a
// connection. It is for answers that end, such as discovery.
type inProcess struct{ api *http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	self := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	r = r.WithContext(apirequest.WithUser(r.Context(), self))
	r.RequestURI = r.URL.RequestURI()
	answer := wire.NewRecorder(discovery.MaxBody)
	(*p.api).ServeHTTP(answer, r)
	if answer.Truncated {
		return nil, fmt.Errorf("ask this server for %s: the answer is longer than %d bytes", r.URL.Path, discovery.MaxBody)
	}
	answer.WriteHeader(http.StatusOK) // if the handler wrote nothing
	return &http.Response{
		StatusCode: answer.Code, Status: http.StatusText(answer.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.Header(), Body: io.NopCloser(&answer.Body), ContentLength: int64(answer.Body.Len()), Request: r,
	}, nil
}
