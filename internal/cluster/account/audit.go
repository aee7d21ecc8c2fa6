package account

import (
	"io"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/skewproof/skewproof/internal/history"
)

// audited reads a kube-apiserver's audit log: its own account of every request that reached it. It joins the two stages of each request. A
// killed server leaves requests without their second stage, and may leave a last line that is cut short.
//
// sources is how many addresses a request that no peer passed on has come through: its client's, and that of a sidecar if there is one.
func audited(log io.Reader, server string, sources int, epoch time.Time) ([]passage, error) {
	var all []passage
	open := map[string][]int{} // indices of hops by audit ID; more than one if a server saw the same request twice
	err := records(log, func(event auditv1.Event) {
		id := string(event.AuditID)
		switch event.Stage {
		case auditv1.StageRequestReceived:
			start := event.RequestReceivedTimestamp.Sub(epoch)
			open[id] = append(open[id], len(all))
			all = append(all, passage{
				Hop: history.Hop{
					Operation: id, Server: server, Start: start, End: start,
					User: event.User.Username, Groups: digestGroups(event.User.Groups), UID: event.User.UID, Extra: digestExtra(event.User.Extra),
					// Whoever forwards adds the one it has it from to X-Forwarded-For, so a further source means a further leg.
					Rerouted: len(event.SourceIPs) > sources,
				},
				asked: asked{verb: event.Verb, uri: event.RequestURI},
			})
		case auditv1.StageResponseComplete, auditv1.StagePanic:
			if len(open[id]) == 0 {
				return // its first stage was before this log began
			}
			// Of nested requests with one ID the inner one, received last, ends first.
			last := len(open[id]) - 1
			i := open[id][last]
			open[id] = slices.Delete(open[id], last, last+1)
			all[i].End = max(all[i].Start, event.StageTimestamp.Sub(epoch))
			if event.ResponseStatus != nil {
				all[i].Status = int(event.ResponseStatus.Code)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
