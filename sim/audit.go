package sim

import (
	"bytes"

	"github.com/skewproof/skewproof/internal/history"
)

// record writes the target's own record of the request, as its audit log would.
func (x *exchange) record() {
	h := x.s.history
	x.hop = len(h.Hops)
	hop := x.newHop()
	hop.User, hop.Groups, hop.UID, hop.Extra = x.seenAs(), ownGroups, ownUID, ownExtra
	if x.parent != nil {
		x.op.hops++
		hop.Altered = x.altered()
		hop.Groups, hop.UID, hop.Extra = attributes(x.request.Header)
	}
	h.Hops = append(h.Hops, hop) // its entry is shared once the status is known
}

// newHop returns the target's record of a request that arrives now.
func (x *exchange) newHop() history.Hop {
	x.entry = history.Entry{Server: x.target.name}
	hop := history.Hop{Operation: x.op.ID, Start: x.s.loop.Now(), End: x.s.loop.Now(), Entry: &x.entry}
	if x.parent != nil {
		hop.Rerouted, hop.From = true, x.parent.target.name
	}
	return hop
}

// altered says how the request from a peer differs from the client's request. It returns "" if they
// are equal.
func (x *exchange) altered() string {
	r, t := x.request, x.op.template
	switch {
	case r.Method != t.request.Method:
		return "method: " + r.Method + ", not " + t.request.Method
	case r.URL.Path != t.url.Path:
		return "path: " + r.URL.Path + ", not " + t.url.Path
	case r.URL.RawQuery != t.url.RawQuery && r.URL.Query().Encode() != t.url.Query().Encode():
		return "query: " + r.URL.RawQuery + ", not " + t.url.RawQuery
	case !bytes.Equal(x.payload, t.payload):
		return "body: another"
	case r.Header.Get("Accept") != t.request.Header.Get("Accept"), r.Header.Get("Content-Type") != t.request.Header.Get("Content-Type"):
		return "headers: others"
	}
	return ""
}

// seenAs returns the user of the request for the target: the user in the headers of a peer, or the
// user of the client.
func (x *exchange) seenAs() string {
	if x.parent == nil {
		return x.op.User
	}
	return x.request.Header.Get("X-Remote-User")
}
