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

// mostPeers is how many servers the table of peers has at most. More of them are a list.
const mostPeers = 12

// peerTable is the table of who was asked and who answered.
type peerTable struct {
	// Answered are the columns; "" is no record.
	Answered []string
	Rows     []peerRow
	// List has the pairs with the most failures, if there are too many servers for a table. Omitted
	// counts the pairs that are left out.
	List    []Peer
	Omitted int
}

type peerRow struct {
	Asked string
	Cells []Peer
}

func newPeerTable(r RunReport) peerTable {
	var t peerTable
	if len(r.Servers) > mostPeers {
		t.List = slices.SortedStableFunc(slices.Values(r.Peers), func(a, b Peer) int {
			return cmp.Or(-cmp.Compare(a.Wrong+a.Failed, b.Wrong+b.Failed), -cmp.Compare(a.Requests, b.Requests))
		})
		const most = 60
		t.Omitted = max(0, len(t.List)-most)
		t.List = t.List[:len(t.List)-t.Omitted]
		return t
	}
	for _, p := range r.Peers {
		t.Answered = appendNew(t.Answered, p.By)
	}
	slices.SortFunc(t.Answered, func(a, b string) int { return cmp.Or(-truth(a != "", b != ""), cmp.Compare(a, b)) })
	for _, p := range r.Peers {
		if n := len(t.Rows); n == 0 || t.Rows[n-1].Asked != p.Asked {
			t.Rows = append(t.Rows, peerRow{p.Asked, make([]Peer, len(t.Answered))})
		}
		t.Rows[len(t.Rows)-1].Cells[slices.Index(t.Answered, p.By)] = p
	}
	return t
}
