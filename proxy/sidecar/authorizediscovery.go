package sidecar

import (
	"io"
	"net/http"
	"strings"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy"
)

// discoveryAuthorizer shows merged discovery only to callers who may see the local server's
// discovery. In a kube-apiserver, authorization comes before the Mixed Version Proxy. The sidecar
// has no authorization of its own. So it first asks the local server for the same path as the same
// caller, including impersonation. If the local server refuses, the sidecar passes the refusal on.
// This request is in the local server's audit log, and it counts for the local server's flow
// control.
type discoveryAuthorizer struct {
	local  *local
	proxy  http.Handler
	merges bool // the policy merges discovery
	// trustsAnyHop is Quirks.TrustAnyHop: the hop header then does not keep a request from merging.
	trustsAnyHop bool
}

func (g *discoveryAuthorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.merges || !g.mayBeMerged(r) || g.authorized(w, r) {
		g.proxy.ServeHTTP(w, r)
	}
}

// authorized reports whether the local server authorizes a request. If not, it passes the local
// server's refusal on to the client.
func (g *discoveryAuthorizer) authorized(w http.ResponseWriter, r *http.Request) bool {
	out := r.Clone(r.Context())
	out.Body, out.ContentLength, out.RequestURI = nil, 0, ""
	for _, name := range []string{"Connection", "Upgrade", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Content-Length"} {
		out.Header.Del(name)
	}
	g.local.direct(out, r)
	answer, err := g.local.transport.RoundTrip(out)
	if err != nil {
		g.local.unavailable(w, r, err)
		return false
	}
	defer answer.Body.Close()
	if provesAuthorization(answer.StatusCode) {
		if answer.ProtoMajor == 1 { // read it, so that the next question needs no new connection
			_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBuffered))
		}
		return true
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Retry-After", "Audit-Id", "Cache-Control", "X-Content-Type-Options",
		"X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"} {
		if values := answer.Header[name]; len(values) > 0 {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(answer.Body, maxBuffered)) // fails only with the connection
	return false
}

// provesAuthorization reports whether a kube-apiserver sends a status for discovery only after it
// has authorized the caller. This is true for the statuses that its handlers send and none of the
// filters before the handlers send. The 4xx in the list say that this server has no such document,
// which a peer may have. All other statuses may come from an earlier filter, such as 400 for a
// timeout that cannot be parsed (k8s.io/apiserver, WithRequestDeadline).
func provesAuthorization(status int) bool {
	switch status {
	case http.StatusOK, http.StatusNotModified, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return true
	}
	return false
}

// mayBeMerged reports whether the proxy may answer the request with merged discovery. A peer gets
// the local server's own answer, unless the policy trusts any hop.
func (g *discoveryAuthorizer) mayBeMerged(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !g.trustsAnyHop && fromPeer(r) && proxy.SaysRerouted(r.Header) {
		return false
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == "/api" || path == "/apis" || path == "/openapi/v3" {
		return true
	}
	info, ok := apirequest.RequestInfoFrom(r.Context())
	return !ok || proxy.RequestFor(info, r.URL.Path).Kind == proxy.KindDiscovery && !strings.HasPrefix(path, "/openapi/")
}
