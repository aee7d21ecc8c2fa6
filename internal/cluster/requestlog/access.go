package requestlog

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// accessRecord has the fields of a line in a sidecar's access log that are read, under the log's
// stable names (proxy/sidecar, AccessRecord). The tests write lines with the sidecar's own type.
type accessRecord struct {
	AuditID  string    `json:"auditID"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Verb     string    `json:"verb"`
	Path     string    `json:"path"`
	User     string    `json:"user"`
	Client   string    `json:"client"`
	Rerouted bool      `json:"rerouted"`
	Peer     string    `json:"peer"`
	Status   int       `json:"status"`
}

// handled is a server's log of one request: a hop, the content of the request, and the peer to
// which it was forwarded.
type handled struct {
	history.Hop
	requested requested
	// impersonated is true if the user is not the sender, but the one whom the sender impersonated.
	impersonated bool
	peer         string // the peer whose answer the sidecar sent to the client, as an apiserver identity; empty if there is none
}

// readAccessLog reads a sidecar's access log. If a sidecar was killed, the requests in progress are
// missing, and the last line may be incomplete.
func readAccessLog(log io.Reader, server string, epoch time.Time) ([]handled, error) {
	var all []handled
	err := readRecords(log, func(r accessRecord) {
		start := r.Start.Sub(epoch)
		unauthenticated := ""
		if r.Status == http.StatusUnauthorized && r.User == "" {
			unauthenticated = notAuthenticated
		}
		all = append(all, handled{
			Hop: history.Hop{Operation: r.AuditID, Start: start, End: max(start, r.End.Sub(epoch)),
				Entry: &history.Entry{
					Server: server, Status: r.Status, User: r.User, Unauthenticated: unauthenticated, Rerouted: r.Rerouted, Client: r.Client,
				}},
			requested: requested{verb: r.Verb, uri: r.Path, withoutQuery: true},
			peer:      r.Peer,
		})
	})
	return all, err
}

// byOperation returns the indices of requests by their ID, in time order.
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

// merge merges the two logs of a server. The sidecar logs every request that it receives. If it
// forwards a request to the kube-apiserver, the kube-apiserver logs the request too; merge counts
// it once. A request that only the kube-apiserver has logged is kept: either the sidecar was killed
// meanwhile, or the request did not come through the sidecar. Only the kube-apiserver logs the
// whole request and the whole user.
func merge(access, audit []handled) []handled {
	indices := byOperation(access)
	matched := make([]bool, len(access)) // whether a record of the kube-apiserver matches
	both := slices.Clone(access)
	for _, a := range audit {
		i := matching(a.Hop, indices[a.Operation], access, matched)
		switch {
		case i < 0:
			both = append(both, a)
		case !matched[i]:
			matched[i] = true
			both[i].requested = a.requested
			// The sidecar does not need to know the user of a bearer token, nor for whom the sender acts.
			if a.impersonated || both[i].User == "" && a.User != "" {
				both[i].User, both[i].Unauthenticated = a.User, ""
			}
			both[i].Unauthenticated = cmp.Or(a.Unauthenticated, both[i].Unauthenticated)
			both[i].Client = cmp.Or(a.Client, both[i].Client)
			if both[i].User == a.User { // the access log has only the user's name
				both[i].Groups, both[i].UID, both[i].Extra = a.Groups, a.UID, a.Extra
			}
		}
	}
	return both
}

// matching returns the index of the sidecar's record of a request that the kube-apiserver has
// logged. This request was in progress at the sidecar when the kube-apiserver received it. If there
// is none, matching returns an earlier record without a match: the client has closed the request,
// and the kube-apiserver handled it late. It returns -1 if there is no such record.
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

// endInOrder changes the end of every hop so that it is not later than the end of the hop that
// forwarded the request and got its answer. A sidecar logs the end of a request when it has sent
// the answer, and the process that waits for this answer may write its record first. names maps
// apiserver identities to servers.
func endInOrder(all []handled, names map[string]string) []history.Hop {
	out := make([]history.Hop, len(all))
	for _, same := range byOperation(all) {
		for n, i := range same {
			out[i] = all[i].Hop
			for _, j := range same[:n] { // the earlier hops are already corrected
				by := out[j]
				if out[i].Rerouted && names[all[j].peer] == out[i].Server && out[i].Start <= by.End {
					out[i].End = min(out[i].End, by.End)
				}
			}
		}
	}
	return out
}
