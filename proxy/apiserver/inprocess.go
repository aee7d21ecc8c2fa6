package apiserver

import (
	"bytes"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// inProcess asks the server's own handler what it serves, behind all filters and without a
// connection. It is for answers that end, such as discovery.
type inProcess struct{ api *http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	self := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	r = r.WithContext(apirequest.WithUser(r.Context(), self))
	r.RequestURI = r.URL.RequestURI()
	answer := &recorder{header: http.Header{}}
	(*p.api).ServeHTTP(answer, r)
	answer.WriteHeader(http.StatusOK)
	return &http.Response{
		StatusCode: answer.code, Status: http.StatusText(answer.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= http.StatusOK {
		r.code = code
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}
