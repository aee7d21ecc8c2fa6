package reports

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Peer is how many requests to one server were answered by which server, according to their logs.
type Peer struct {
	// Asked is the server that was asked. By is the server that handled the request; it is empty if
	// no server has recorded it.
	Asked string `json:"asked"`
	By    string `json:"by,omitempty"`
	// Requests counts all. Failed counts those that got a 5xx or no complete response. Wrong counts
	// those that an invariant that counts judged wrong, whether they failed or not.
	Requests int `json:"requests"`
	Failed   int `json:"failed,omitempty"`
	Wrong    int `json:"wrong,omitempty"`
}

// handledBy is the last server of the hops: the one whose answer the client got.
func handledBy(hops []history.Hop) string {
	by := ""
	for _, h := range hops {
		if by == "" || h.Rerouted {
			by = h.Server
		}
	}
	return by
}

func newPeers(facts *invariant.Facts, wrong map[*history.Operation]bool) []Peer {
	type pair struct{ asked, by string }
	counts := map[pair]*Peer{}
	for o, handled := range facts.Handled() {
		if o.Status == 0 && o.Failure == history.FailureCanceled {
			continue
		}
		k := pair{o.Server, handledBy(handled.Hops)}
		p := counts[k]
		if p == nil {
			p = &Peer{Asked: k.asked, By: k.by}
			counts[k] = p
		}
		p.Requests++
		if failed(o) {
			p.Failed++
		}
		if wrong[o] {
			p.Wrong++
		}
	}
	var out []Peer
	for _, p := range counts {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Peer) int { return cmp.Or(cmp.Compare(a.Asked, b.Asked), cmp.Compare(a.By, b.By)) })
	return out
}

// failed reports whether the request got a 5xx or no complete response. A watch that the run ended
// did not fail.
func failed(o *history.Operation) bool {
	return o.Status >= 500 || o.Failure != history.FailureNone && o.Failure != history.FailureCanceled
}

// mostPeers is how many pairs of servers the page has.
const mostPeers = 60

// peerList has the pairs with the most failures first. Omitted counts the pairs that are left out.
type peerList struct {
	Pairs   []Peer
	Omitted int
}

func newPeerList(r RunReport) (l peerList) {
	pairs := slices.SortedStableFunc(slices.Values(r.Peers), func(a, b Peer) int {
		return cmp.Or(-cmp.Compare(a.Wrong+a.Failed, b.Wrong+b.Failed), -cmp.Compare(a.Requests, b.Requests))
	})
	l.Pairs, l.Omitted = firstRows(pairs, mostPeers)
	return l
}
