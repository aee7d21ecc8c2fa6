package proxy

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// ServeHTTP serves one request. It uses the same table until the end of the request. Otherwise an
// event between two attempts could turn a failed attempt at the last peer into a 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	table := h.store.Table()
	policy := table.policy
	rerouted := h.rerouted(r, policy.Quirks.TrustAnyHop)
	if !policy.Quirks.TrustAnyHop {
		r = withoutHop(r)
	}
	info, ok := apirequest.RequestInfoFrom(r.Context())
	if !ok {
		var err error
		if info, err = requestInfo.NewRequestInfo(r); err != nil {
			responsewriters.InternalError(w, r, err)
			return
		}
	}
	e := &exchange{h: h, w: w, r: r, info: info, table: table, policy: policy}
	// CONNECT asks for a tunnel, not for a resource.
	if r.Method != http.MethodConnect {
		e.request = RequestFor(info, r.URL.Path)
	}
	e.request.Rerouted = rerouted
	e.request.Repeatable = repeatable(r, info)
	if h.serveDiscovery(e) {
		return
	}
	e.follow(e.decide())
}

// exchange is one request together with its answer.
type exchange struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request // without the headers of the hop
	info    *apirequest.RequestInfo
	table   *Table
	policy  *Policy
	request Request

	tried []Attempt
	last  error // why the last attempt failed, in the transport's words
	soon  bool  // an attempt failed because this server's knowledge of the peer is old
}

func (e *exchange) decide() Decision {
	d := e.table.Decide(e.request, e.tried, e.h.now(), e.h.config.Pick)
	e.h.observer.Decided(e.r.Context(), e.request, d, len(e.tried))
	return d
}

func (e *exchange) follow(d Decision) {
	switch d.Action {
	case Forward:
		e.forward(d)
	case Unavailable:
		e.unavailable(d)
	default:
		e.serveLocally()
	}
}

func (e *exchange) serveLocally() {
	w := e.w
	if e.request.Rerouted {
		w = responsewriter.WrapForHTTP1Or2(&withoutRefusal{ResponseWriter: w})
	}
	e.h.config.Local.ServeHTTP(w, e.r)
}

// repeatable reports whether a request may be sent again even if it may have been carried out. PUT
// and DELETE are not repeatable, although RFC 9110 (9.2.2) calls them idempotent: a second PUT with
// a resourceVersion is answered with 409, a second DELETE with 404. A GET that connects to
// something (exec, proxy) is not repeatable either.
func repeatable(r *http.Request, info *apirequest.RequestInfo) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	switch info.Subresource {
	case "attach", "exec", "portforward", "proxy":
		return false
	}
	return info.Verb != "proxy" && requestedProtocol(r) == ""
}
