package account

import (
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy/sidecar"
)

// passage is a server's account of one request: a hop, what was asked, and to whom it passed the request on.
type passage struct {
	history.Hop
	asked    asked
	answered string // the peer whose answer a sidecar passed back, as an apiserver identity; empty if none was
}

// accessed reads a sidecar's access log. A killed sidecar leaves out what it was at, and may leave a last line that is cut short.
func accessed(log io.Reader, server string, epoch time.Time) ([]passage, error) {
	var all []passage
	err := records(log, func(r sidecar.AccessRecord) {
		start := r.Start.Sub(epoch)
		all = append(all, passage{
			Hop: history.Hop{
				Operation: r.AuditID, Server: server, Start: start, End: max(start, r.End.Sub(epoch)),
				Status: r.Status, User: r.User, Rerouted: r.Rerouted,
			},
			asked:    asked{verb: r.Verb, uri: r.Path, withoutQuery: true},
			answered: r.Peer,
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// merge makes one account of the two that a server gives: the sidecar tells of every request that came to its door, the kube-apiserver
// behind it once more of those that it was handed. What the kube-apiserver alone tells of is kept: requests that were under way
// when the sidecar was killed, and whatever found a way around it. What was asked, and by whom, is told in full by the kube-apiserver only.
func merge(passages, audit []passage) []passage {
	byID := map[string][]int{} // indices of passages, in time order
	for i, p := range passages {
		byID[p.Operation] = append(byID[p.Operation], i)
	}
	for _, all := range byID {
		slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(passages[i].Start, passages[j].Start) })
	}
	told := make([]bool, len(passages)) // passages that the kube-apiserver has told its part of
	both := slices.Clone(passages)
	for _, h := range audit {
		i := passageOf(h.Hop, byID[h.Operation], passages, told)
		switch {
		case i < 0:
			both = append(both, h)
		case !told[i]:
			told[i] = true
			both[i].asked = h.asked
			if both[i].User == h.User { // of whom the sidecar's log has the name only
				both[i].Groups, both[i].UID, both[i].Extra = h.Groups, h.UID, h.Extra
			}
		}
	}
	return both
}

// passageOf finds the sidecar's account of a request that the kube-apiserver tells of: one that lasted when it came in. Failing that, an
// earlier one whose request has not been seen behind the sidecar yet: the client went away, and the kube-apiserver took it up late. -1
// if there is none.
func passageOf(h history.Hop, candidates []int, passages []passage, told []bool) int {
	late := -1
	for _, i := range candidates {
		p := passages[i]
		switch {
		case p.Start > h.Start+auditPrecision:
		case h.Start <= p.End:
			return i
		case !told[i]:
			late = i
		}
	}
	return late
}

// auditPrecision is the unit of the times in audit logs, which are cut down to it (metav1.MicroTime).
const auditPrecision = time.Microsecond

// settle ends every hop no later than the hop that passed it on and had its answer. A sidecar writes down the end of a request when the
// answer has left it, and the one that waits for that answer may be quicker to write: the order of two writes of two processes is not
// the order of what they tell of. names maps apiserver identities to servers.
func settle(all []passage, names map[string]string) []history.Hop {
	byID := map[string][]int{}
	for i, p := range all {
		byID[p.Operation] = append(byID[p.Operation], i)
	}
	out := make([]history.Hop, len(all))
	for _, same := range byID {
		slices.SortStableFunc(same, func(i, j int) int { return cmp.Compare(all[i].Start, all[j].Start) })
		for n, i := range same {
			out[i] = all[i].Hop
			for _, j := range same[:n] { // which are settled already
				by := out[j]
				if out[i].Rerouted && names[all[j].answered] == out[i].Server && out[i].Start <= by.End {
					out[i].End = min(out[i].End, by.End)
				}
			}
		}
	}
	return out
}
