package proxy

import (
	"net/http"
	"strings"
)

const (
	// HopHeader says that a peer has sent the request (KEP-4020: at most one hop). Its value is "true".
	HopHeader = "X-Kubernetes-Peer-Proxied"
	// HopHeaderPublished is the name of that header in the description of the alpha. It is read, and never sent.
	HopHeaderPublished = "X-Kubernetes-Apiserver-Rerouted"
	// RefusedHeader is in the 503 with which a peer says that it does not serve a rerouted request, and has not carried it out. It is
	// sent only to authenticated peers, and never passed on.
	RefusedHeader = "X-Skewproof-Refused"
)

// isHopHeader reports whether a header is for peers only, in any spelling: a caller may have filled the map without canonical names.
func isHopHeader(name string) bool {
	switch len(name) {
	case len(HopHeader):
		return strings.EqualFold(name, HopHeader)
	case len(HopHeaderPublished):
		return strings.EqualFold(name, HopHeaderPublished)
	case len(RefusedHeader):
		return strings.EqualFold(name, RefusedHeader)
	}
	return false
}

// rerouted reports whether a peer has sent the request.
func (h *Handler) rerouted(r *http.Request, trustAny bool) bool {
	if trustAny {
		return r.Header.Get(HopHeader) == "true" // upstream: WrapHandler looks at nothing else
	}
	return SaysRerouted(r.Header) && h.fromPeer(r)
}

// SaysRerouted reports whether the headers of a request say that a peer has sent it. Believe it only if the sender is a peer.
func SaysRerouted(h http.Header) bool {
	// A header of a client that an upstream server passes on stands before the server's own, so every value counts.
	said := false
	for name, values := range h { // in any order
		if isHopHeader(name) && !strings.EqualFold(name, RefusedHeader) {
			for _, v := range values {
				said = said || strings.EqualFold(strings.TrimSpace(v), "true")
			}
		}
	}
	return said
}

// withoutHop returns the request as the local server may see it: without any header of the hop, in any spelling and number, and
// without their names where headers list headers. The request itself is not changed, and returned if there is nothing to remove.
func withoutHop(r *http.Request) *http.Request {
	if !hasHop(r) {
		return r
	}
	clean := *r
	clean.Header = make(http.Header, len(r.Header))
	for name, values := range r.Header { // in any order
		switch {
		case isHopHeader(name):
		case listsHop(name, values):
			if kept := withoutHopNames(values); len(kept) > 0 {
				clean.Header[name] = kept
			}
		default:
			clean.Header[name] = values
		}
	}
	if r.Trailer != nil {
		clean.Trailer = r.Trailer.Clone()
		for name := range r.Trailer { // in any order
			if isHopHeader(name) {
				delete(clean.Trailer, name)
			}
		}
	}
	return &clean
}

// hasHop reports whether [withoutHop] has anything to do.
func hasHop(r *http.Request) bool {
	for name, values := range r.Header { // in any order
		if isHopHeader(name) || listsHop(name, values) {
			return true
		}
	}
	for name := range r.Trailer { // in any order
		if isHopHeader(name) {
			return true
		}
	}
	return false
}

// listsHop reports whether a header lists headers (RFC 9110, 7.6.1 and 6.6.2), one of the hop among them.
func listsHop(name string, values []string) bool {
	if !strings.EqualFold(name, "Connection") && !strings.EqualFold(name, "Trailer") {
		return false
	}
	for _, v := range values {
		for token := range strings.SplitSeq(v, ",") {
			if isHopHeader(strings.TrimSpace(token)) {
				return true
			}
		}
	}
	return false
}

// withoutHopNames returns lists of header names without those of the hop.
func withoutHopNames(values []string) []string {
	var kept []string
	for _, v := range values {
		var tokens []string
		for token := range strings.SplitSeq(v, ",") {
			if token = strings.TrimSpace(token); token != "" && !isHopHeader(token) {
				tokens = append(tokens, token)
			}
		}
		if len(tokens) > 0 {
			kept = append(kept, strings.Join(tokens, ", "))
		}
	}
	return kept
}

// withoutRefusal is the writer of an answer to a peer whose request is served here. It removes the RefusedHeader, which a backend of the
// local server may write (a pod behind the proxy subresource can write any header).
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
