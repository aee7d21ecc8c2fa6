package invariant

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// identified yields the operations whose ID no other operation has, so that their hops are known.
func (f *Facts) identified() iter.Seq[*observation] {
	return func(yield func(*observation) bool) {
		for _, o := range f.observations {
			if !o.shared && !yield(o) {
				return
			}
		}
	}
}

// atPeer reports whether the hop is at a server to which a peer forwarded the operation, rather
// than at the server that the client asked.
func atPeer(op *history.Operation, h history.Hop) bool {
	return h.Server != op.Server || h.Rerouted || h.From != ""
}

// forwarded reports whether the hops show that the operation was forwarded to a peer.
func (o *observation) forwarded() bool {
	return slices.ContainsFunc(o.hops, func(h history.Hop) bool { return atPeer(o.op, h) })
}

// chains finds for the hops of one operation which server forwarded it to which. Hop h was made
// from the latest-begun hop whose time contains the time of h. For each hop, chains returns the
// servers from the asked one to the hop's own server.
//
// Only containment distinguishes two cases: a chain a→b→c, which is the beginning of a loop, and a
// failover a→b and then a→c, in which each is one hop. Containment is reliable. A server writes its
// audit event before it ends the response, and so before the server that forwarded the request can
// end its own response. Four cases look like chains but are not:
//   - A client (net/http's Transport) may send a request again with the same ID while the asked
//     server still handles the first request. A hop at the asked server that does not come from a
//     peer begins a new chain.
//   - A server that stops waiting for a peer may try the next peer while the first is still busy.
//     If a hop outlasts the hop that made it, the hop was given up and made no other hops.
//   - If no hop contains a hop at a peer, the asked server forwarded the request. The asked
//     server's own entry is lost because the server was killed.
//   - A request that a paused server received is handled when the server is resumed, when the
//     sender has long given it up and tried the next peer. See [Facts.heldBack].
//
// If the history names the forwarding server (the simulator does), h was made from that server's
// latest-begun hop, or from one whose entry is lost.
func (f *Facts) chains(o *observation) (paths [][]string, retries int) {
	asked, hops := o.op.Server, o.hops
	paths = make([][]string, len(hops))
	givenUp := make([]bool, len(hops))
	roots := 0
	for i, h := range hops {
		if h.Server == asked && !h.Rerouted {
			roots++
			paths[i] = []string{asked}
			continue
		}
		parent := []string{asked}
		if h.From != "" && h.From != asked {
			parent = []string{asked, h.From}
		}
		late := f.heldBack(o.op, h)
		for j := i - 1; j >= 0 && !late; j-- {
			if h.From != "" { // containment does not matter then
				if hops[j].Server == h.From && hops[j].Start <= h.Start && hops[j].End >= h.Start {
					parent = paths[j]
					break
				}
				continue
			}
			if hops[j].Start > h.Start || hops[j].End < h.Start || givenUp[j] {
				continue
			}
			if h.End <= hops[j].End {
				parent = paths[j]
				givenUp[i] = false
				break
			}
			givenUp[i] = true
		}
		paths[i] = append(slices.Clone(parent), h.Server)
	}
	return paths, max(0, roots-1)
}

// afterPause is how long after the end of a pause a server may still begin to handle what it
// received before.
const afterPause = 5 * time.Second

// heldBack reports whether a pause of its server may have delayed a hop, so that nothing says which
// server sent it. Its sender has gone: no server has recorded an answer.
func (f *Facts) heldBack(op *history.Operation, h history.Hop) bool {
	server := f.byName[h.Server]
	if h.From != "" || h.Status != 0 || server == nil || h.Server == op.Server {
		return false
	}
	return slices.ContainsFunc(server.line, func(s span) bool {
		return s.phase == phasePaused && s.to > op.Start && s.from < h.Start && h.Start-s.to <= afterPause
	})
}

// mostHops is the number of hops that a sentence shows. A request in an endless loop has thousands.
const mostHops = 8

// route writes hops for people, each with its detail.
func route(hops []history.Hop, detail func(history.Hop) string) string {
	var parts []string
	for _, h := range hops[:min(len(hops), mostHops)] {
		parts = append(parts, fmt.Sprintf("%s from %s to %s%s", h.Server, clock(h.Start), clock(h.End), detail(h)))
	}
	if more := len(hops) - mostHops; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d times more", more))
	}
	return strings.Join(parts, ", ")
}

func noDetail(history.Hop) string { return "" }

// asUser is the user whom the server authenticated.
func asUser(h history.Hop) string {
	who := " as " + h.User
	if h.User == "" {
		who = " without a user"
	}
	if h.Unauthenticated != "" {
		who += " (" + h.Unauthenticated + ")"
	}
	return who
}

// withStatus is what the server answered.
func withStatus(h history.Hop) string {
	if h.Status == 0 {
		return " with no recorded answer"
	}
	return fmt.Sprintf(" with %d", h.Status)
}

// pathText writes a chain of servers for people.
func pathText(path []string) string {
	if len(path) > mostHops {
		return strings.Join(path[:mostHops], "→") + "→…"
	}
	return strings.Join(path, "→")
}

func succeeded(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices
}
