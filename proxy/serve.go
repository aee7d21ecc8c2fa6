package proxy

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// ServeHTTP serves one request. One table is asked throughout, so that what is learnt meanwhile cannot turn a failed attempt at the last
// peer into a 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	table := h.store.Table()
	policy, rerouted := table.policy, false
	switch {
	case policy.Quirks.TrustAnyHop:
		rerouted = h.rerouted(r, true)
	case hasHop(r):
		rerouted = h.rerouted(r, false)
		r = withoutHop(r)
	}
	info, ok := apirequest.RequestInfoFrom(r.Context())
	if !ok {
		var err error
		if info, err = h.requestInfo.NewRequestInfo(r); err != nil {
			responsewriters.InternalError(w, r, err)
			return
		}
	}
	e := &exchange{h: h, w: w, r: r, info: info, table: table, policy: policy}
	// CONNECT asks for a tunnel, not for a resource, whatever path it names.
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

// exchange is one request on its way to an answer.
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
}

// decide asks the table, given the attempts so far.
func (e *exchange) decide() Decision {
	d := e.table.Decide(e.request, e.tried, e.h.now(), e.h.pick)
	e.h.observer.Decided(e.r.Context(), e.request, d, len(e.tried))
	return d
}

// follow does what was decided.
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

// serveLocally hands the request to the local server.
func (e *exchange) serveLocally() {
	w := e.w
	if e.request.Rerouted {
		w = responsewriter.WrapForHTTP1Or2(&withoutRefusal{ResponseWriter: w})
	}
	e.h.local.ServeHTTP(w, e.r)
}

// repeatable reports whether a request may be sent again though it may have been carried out. RFC 9110 (9.2.2) counts PUT and DELETE among
// the idempotent methods, but their answers are not: the second PUT with a resourceVersion is a 409, the second DELETE a 404, and the
// client would take its own success for a failure. And a GET that connects to something (exec, proxy) does whatever that does.
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
