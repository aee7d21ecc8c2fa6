package proxy

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/proxy/internal/wire"
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

// hopHeaders are the headers that only peers exchange.
var hopHeaders = [...]string{HopHeader, HopHeaderPublished, RefusedHeader}

// isHopHeader reports whether a header is one of hopHeaders, in any spelling: a caller may fill the
// header map with names that are not canonical.
func isHopHeader(name string) bool {
	for _, hop := range hopHeaders {
		if len(name) == len(hop) && strings.EqualFold(name, hop) {
			return true
		}
	}
	return false
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
	said := false                 // every value counts
	for name, values := range h { // in any order
		if isHopHeader(name) && !strings.EqualFold(name, RefusedHeader) {
			for _, v := range values {
				said = said || strings.EqualFold(strings.TrimSpace(v), "true")
			}
		}
	}
	return said
}

// withoutHop returns the request without the headers of the hop, in any spelling. It also removes
// their names from lists of headers (Connection, Trailer). It does not change r. It returns r
// itself if there is nothing to remove.
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
		clean.Trailer = maps.Clone(r.Trailer)
		maps.DeleteFunc(clean.Trailer, func(name string, _ []string) bool { return isHopHeader(name) })
	}
	return &clean
}

// hasHop reports whether [withoutHop] has anything to remove.
func hasHop(r *http.Request) bool {
	for name, values := range r.Header { // in any order
		if isHopHeader(name) || listsHop(name, values) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.Trailer)), isHopHeader)
}

// listsHop reports whether a header lists a header of the hop (RFC 9110, 7.6.1 and 6.6.2).
func listsHop(name string, values []string) bool {
	if !strings.EqualFold(name, "Connection") && !strings.EqualFold(name, "Trailer") {
		return false
	}
	return slices.ContainsFunc(slices.Collect(wire.Tokens(values)), isHopHeader)
}

// withoutHopNames removes the headers of the hop from lists of header names.
func withoutHopNames(values []string) []string {
	var kept []string
	for _, v := range values {
		names := slices.DeleteFunc(slices.Collect(wire.Tokens([]string{v})), isHopHeader)
		if len(names) > 0 {
			kept = append(kept, strings.Join(names, ", "))
		}
	}
	return kept
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
