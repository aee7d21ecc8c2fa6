package requestlog

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// accessRecord is what is read of a line of a sidecar's access log, under the log's stable names
// (proxy/sidecar, AccessRecord). The tests write lines with the sidecar's own type.
type accessRecord struct {
	AuditID  string    `json:"auditID"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Verb     string    `json:"verb"`
	Path     string    `json:"path"`
	User     string    `json:"user"`
	Rerouted bool      `json:"rerouted"`
	Peer     string    `json:"peer"`
	Status   int       `json:"status"`
}

// handled is what a server logged of one request: a hop, the request, and to whom it was passed on.
type handled struct {
	history.Hop
	requested requested
	peer      string // the peer whose answer a sidecar passed back, as an apiserver identity; empty if none was
}

// readAccessLog reads a sidecar's access log. A killed sidecar leaves out the requests that it was
// handling, and may leave a last line that is cut short.
func readAccessLog(log io.Reader, server string, epoch time.Time) ([]handled, error) {
	var all []handled
	err := readRecords(log, func(r accessRecord) {
		start := r.Start.Sub(epoch)
		unauthenticated := ""
		if r.Status == http.StatusUnauthorized && r.User == "" {
			unauthenticated = notAuthenticated
		}
		all = append(all, handled{
			Hop: history.Hop{
				Operation: r.AuditID, Server: server, Start: start, End: max(start, r.End.Sub(epoch)),
				Status: r.Status, User: r.User, Unauthenticated: unauthenticated, Rerouted: r.Rerouted,
			},
			requested: requested{verb: r.Verb, uri: r.Path, withoutQuery: true},
			peer:      r.Peer,
		})
	})
	return all, err
}

// byOperation are the indices of requests by their ID, in time order.
func byOperation(all []handled) map[string][]int {
	indices := map[string][]int{}
	for i, r := range all {
		indices[r.Operation] = append(indices[r.Operation], i)
	}
	for _, same := range indices {
		slices.SortStableFunc(same, func(i, j int) int { return cmp.Compare(all[i].Start, all[j].Start) })
	}
	return indices
}

// merge merges the two logs of a server. The sidecar logs every request that it gets, and the
// kube-apiserver logs those again that the sidecar hands to it: they are counted once. What only
// the kube-apiserver has logged is kept: the sidecar was killed meanwhile, or the request did not
// come through it. Only the kube-apiserver logs in full what was requested, and by whom.
func merge(access, audit []handled) []handled {
	indices := byOperation(access)
	matched := make([]bool, len(access)) // to a record of the kube-apiserver
	both := slices.Clone(access)
	for _, a := range audit {
		i := matching(a.Hop, indices[a.Operation], access, matched)
		switch {
		case i < 0:
			both = append(both, a)
		case !matched[i]:
			matched[i] = true
			both[i].requested = a.requested
			if both[i].User == "" && a.User != "" { // a bearer token's, which the sidecar had no need to learn
				both[i].User, both[i].Unauthenticated = a.User, ""
			}
			both[i].Unauthenticated = cmp.Or(a.Unauthenticated, both[i].Unauthenticated)
			if both[i].User == a.User { // the access log has the name only
				both[i].Groups, both[i].UID, both[i].Extra = a.Groups, a.UID, a.Extra
			}
		}
	}
	return both
}

// matching finds the sidecar's record of a request that the kube-apiserver has logged: one that was
// under way when the kube-apiserver got it. Otherwise, an earlier one that has no match yet: the
// client went away, and the kube-apiserver took the request up late. -1 if there is none.
func matching(h history.Hop, candidates []int, access []handled, matched []bool) int {
	late := -1
	for _, i := range candidates {
		r := access[i]
		switch {
		case r.Start > h.Start+auditPrecision:
		case h.Start <= r.End:
			return i
		case !matched[i]:
			late = i
		}
	}
	return late
}

// auditPrecision is the precision of times in audit logs (metav1.MicroTime).
const auditPrecision = time.Microsecond

// endInOrder ends every hop no later than the hop that passed it on and got its answer. A sidecar
// logs the end of a request when the answer has left it, and the process that waits for that answer
// may write its record first. names maps apiserver identities to servers.
func endInOrder(all []handled, names map[string]string) []history.Hop {
	out := make([]history.Hop, len(all))
	for _, same := range byOperation(all) {
		for n, i := range same {
			out[i] = all[i].Hop
			for _, j := range same[:n] { // these are in order already
				by := out[j]
				if out[i].Rerouted && names[all[j].peer] == out[i].Server && out[i].Start <= by.End {
					out[i].End = min(out[i].End, by.End)
				}
			}
		}
	}
	return out
}
