package requestlog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/skewproof/skewproof/internal/history"
)

// PeerAnnotation is the annotation in which a server with the reference proxy names the peer that
// has answered a request, by its apiserver identity. (proxy/apiserver has the same constant.)
const PeerAnnotation = "mixed-version-proxy.skewproof.github.io/peer"

// handled is a server's log of one request: a hop, the content of the request, and the peer whose
// answer the client got.
type handled struct {
	history.Hop
	requested requested
	peer      string // its apiserver identity; empty if there is none, or if the log does not say
}

// readAuditLog reads a kube-apiserver's audit log and joins the stages of each request. If a server
// was killed, the last stage of some requests may be missing, and the last line may be incomplete.
func readAuditLog(log io.Reader, server string, epoch time.Time) ([]handled, error) {
	var all []handled
	open := map[string][]int{}    // indices of hops by audit ID; more than one if a server saw the same request twice
	agents := map[string]string{} // one copy of each: there are few agents and many records
	asked := func(event auditv1.Event) requested {
		agent, ok := agents[event.UserAgent]
		if !ok {
			agent = event.UserAgent
			agents[agent] = agent
		}
		return requested{verb: event.Verb, uri: event.RequestURI, agent: agent}
	}
	err := readRecords(log, func(event auditv1.Event) {
		id := string(event.AuditID)
		switch event.Stage {
		case auditv1.StageRequestReceived:
			start := event.RequestReceivedTimestamp.Sub(epoch)
			open[id] = append(open[id], len(all))
			all = append(all, handled{
				Hop: history.Hop{Operation: id, Start: start, End: start, Entry: &history.Entry{
					Server: server, User: event.User.Username, Groups: digestGroups(event.User.Groups),
					UID: event.User.UID, Extra: digestExtra(event.User.Extra), Rerouted: len(event.SourceIPs) > 1, Client: client(event),
				}},
				requested: asked(event),
			})
		case auditv1.StageResponseStarted:
			switch received := event.RequestReceivedTimestamp.Sub(epoch); {
			case event.User.Username == "": // see Hop.Unauthenticated
				all = append(all, handled{
					Hop: history.Hop{Operation: id, Start: received, End: max(received, event.StageTimestamp.Sub(epoch)),
						Entry: &history.Entry{
							Server: server, Status: code(event), Unauthenticated: reason(event), Rerouted: len(event.SourceIPs) > 1, Client: client(event),
						}},
					requested: asked(event),
				})
			default: // recorded here too, because the process may be killed before the last stage
				for _, i := range open[id] {
					if all[i].Start == received {
						all[i].Status = code(event)
						all[i].impersonate(event)
					}
				}
			}
		case auditv1.StageResponseComplete, auditv1.StagePanic:
			if len(open[id]) == 0 {
				return // its first stage is not in this log
			}
			// Among nested requests with one ID, the inner request, which was received last, ends
			// first.
			last := len(open[id]) - 1
			i := open[id][last]
			open[id] = slices.Delete(open[id], last, last+1)
			all[i].End = max(all[i].Start, event.StageTimestamp.Sub(epoch))
			all[i].Status = cmp.Or(code(event), all[i].Status)
			all[i].peer = event.Annotations[PeerAnnotation]
			all[i].impersonate(event)
		}
	})
	return all, err
}

// impersonate makes the user of a request the one whom its sender impersonated, if there is one.
// The first stage of a request does not say so yet.
func (h *handled) impersonate(event auditv1.Event) {
	if as := event.ImpersonatedUser; as != nil {
		h.User, h.Groups, h.UID, h.Extra = as.Username, digestGroups(as.Groups), as.UID, digestExtra(as.Extra)
	}
}

// code returns the status of the answer; 0 if the event has none.
func code(event auditv1.Event) int {
	if event.ResponseStatus == nil {
		return 0
	}
	return int(event.ResponseStatus.Code)
}

// client returns the address of the first sender of the request: those that pass it on add theirs
// (k8s.io/apimachinery, pkg/util/net, SourceIPs).
func client(event auditv1.Event) string {
	if len(event.SourceIPs) == 0 {
		return ""
	}
	return event.SourceIPs[0]
}

// reason returns the server's text about why it could not authenticate the sender of the request.
func reason(event auditv1.Event) string {
	if event.ResponseStatus == nil {
		return notAuthenticated
	}
	return cmp.Or(event.ResponseStatus.Message, notAuthenticated)
}

const notAuthenticated = "Authentication failed"

// digestGroups returns the same digest for the same set of groups (k8s.io/apiserver, user.Info).
func digestGroups(groups []string) string {
	sorted := slices.Clone(groups)
	slices.Sort(sorted)
	return digest(slices.Compact(sorted))
}

// digestExtra returns the same digest for the same fields with the same values; "" if there are
// none. Keys are compared in lower case, because headers carry them from one server to the next
// (KEP-4020, proxy transport between apiservers and authn; --requestheader-extra-headers-prefix).
func digestExtra(extra map[string]authnv1.ExtraValue) string {
	if len(extra) == 0 {
		return ""
	}
	lower := map[string][]string{}
	for key, values := range extra {
		key = strings.ToLower(key)
		lower[key] = append(lower[key], values...)
	}
	for _, values := range lower {
		slices.Sort(values)
	}
	return digest(lower)
}

// digest returns a short hash, for comparisons within one run. JSON writes the keys of a map in
// order.
func digest(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return "" // strings can always be encoded
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:6])
}
