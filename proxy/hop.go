package proxy

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

const (
	// HopHeader with the value "true" says that a peer sent the request (KEP-4020: at most one
	// hop).
	HopHeader = "X-Kubernetes-Peer-Proxied"
	// HopHeaderPublished is the name of HopHeader in the description of the alpha. It is read but
	// never sent.
	HopHeaderPublished = "X-Kubernetes-Apiserver-Rerouted"
	// RefusedHeader marks a 503 that says: the peer does not serve the forwarded request, and did
	// not carry it out. It is sent only to authenticated peers. It is never passed on to a client.
	RefusedHeader = "X-Skewproof-Refused"
)

// isHopHeader reports whether a header is one that only peers exchange. Names are canonical: an
// HTTP server changes every spelling to the canonical one.
func isHopHeader(name string) bool {
	return name == HopHeader || name == HopHeaderPublished || name == RefusedHeader
}

func (h *Handler) rerouted(r *http.Request, trustAny bool) bool {
	if trustAny {
		return r.Header.Get(HopHeader) == "true" // upstream: WrapHandler
	}
	return SaysRerouted(r.Header) && h.config.FromPeer(r)
}

// SaysRerouted reports whether headers claim that a peer sent the request. Any client can claim
// this.
func SaysRerouted(h http.Header) bool {
	says := func(v string) bool { return strings.EqualFold(strings.TrimSpace(v), "true") }
	return slices.ContainsFunc(h[HopHeader], says) || slices.ContainsFunc(h[HopHeaderPublished], says)
}

// withoutHop returns the request without the headers of the hop. It does not change r. It returns r
// itself if there is nothing to remove.
func withoutHop(r *http.Request) *http.Request {
	if r.Header[HopHeader] == nil && r.Header[HopHeaderPublished] == nil && r.Header[RefusedHeader] == nil {
		return r
	}
	clean := *r
	clean.Header = maps.Clone(r.Header)
	maps.DeleteFunc(clean.Header, func(name string, _ []string) bool { return isHopHeader(name) })
	return &clean
}

// withoutRefusal removes the RefusedHeader from the local server's answers to peers. Only the proxy
// may set this header, but a pod behind the proxy subresource can write any header.
type withoutRefusal struct {
	http.ResponseWriter
	wrote bool
}

func (w *withoutRefusal) WriteHeader(code int) {
	if !w.wrote {
		w.wrote = code >= 200 || code == http.StatusSwitchingProtocols
		w.Header().Del(RefusedHeader)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *withoutRefusal) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController] and for the API machinery's response writers.
func (w *withoutRefusal) Unwrap() http.ResponseWriter { return w.ResponseWriter }
