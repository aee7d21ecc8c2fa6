package invariant

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// watchesLast is core, although an apiserver may end a watch at any time (timeoutSeconds is an
// upper bound). The reason is that the peer that handles a watch continues it. If both processes
// live and the link has no fault, only the hop can have ended the watch. So only forwarded watches
// without any such disturbance are judged.
var watchesLast = Invariant{
	Name:  "WatchesLast",
	Grade: GradeCore,
	Sentence: "A watch that is passed on to a peer lasts as long as its client asked for, and delivers an event if an object is " +
		"created during this time, unless one of the two apiservers is disturbed.",
	Source: "KEP-4020, Goals: a request is handled by an apiserver that can serve it; Kubernetes API concepts, efficient detection of " +
		"changes",
	judge:    judgeWatches,
	unknown:  "the history does not say how it ended",
	pressure: []pressure{skewed, watches, upgrades},
}

const (
	// watchBegins is the time after its request in which a watch may miss a created object.
	watchBegins = time.Second
	// eventDelay is the longest time that an event may take through etcd and a watch cache. Usually
	// it takes some milliseconds.
	eventDelay = 3 * time.Second
)

func judgeWatches(f *Facts) *tally {
	t := newTimedTally(f)
	creations := f.creations()
	lasted, eventful := 0, 0
	for _, o := range f.observations {
		r, cause := f.ruleWatch(o)
		if r == rulingRight {
			lasted++
			if f.bringsEvents(o, creations) {
				eventful++
				if o.op.Events == 0 {
					r, cause = rulingWrong, "no event, though an object was created meanwhile"
				}
			}
		}
		if t.rule(o, r) {
			t.violate(o, *o.situation, cause, cause+", "+f.reachability(o, *o.situation), answer(o.op)+"; "+cause)
		}
	}
	t.fact("watches passed on that lasted", lasted)
	t.fact("of those, while an object was created", eventful)
	return t
}

// ruleWatch rules on how long an established watch lasted, and says what is wrong with it. It does
// not judge external servers, because their processes may have ended unseen. It also does not judge
// watches of custom resources or aggregated APIs, because these end when a definition changes or
// its server ends.
func (f *Facts) ruleWatch(o *observation) (ruling, string) {
	timeout, ok := established(o.op)
	if !ok || f.run.External || o.resource == nil || !builtIn(o.op.GVR.Group) || !o.skewed() || !f.unaffected(o) {
		return rulingNone, ""
	}
	if o.op.End-o.op.Start+settle >= timeout {
		return rulingRight, ""
	}
	switch o.op.Failure {
	case history.FailureNone:
		return rulingWrong, "it ended before its timeout"
	case history.FailureReset, history.FailureTLS:
		return rulingWrong, "it broke off before its timeout"
	case history.FailureCanceled, history.FailureTimeout: // the client ended it
		return rulingNone, ""
	default:
		return rulingUnknown, ""
	}
}

// established reports whether the operation is a watch that has begun, and returns its timeout. A
// client that asked for an upgrade and got 200 has no watch.
func established(op *history.Operation) (timeout history.Time, ok bool) {
	upgraded := op.Status == http.StatusSwitchingProtocols
	if op.Verb != "watch" || !upgraded && (op.Status != http.StatusOK || op.Client == history.ClientSocket) {
		return 0, false
	}
	u, err := url.ParseRequestURI(op.Path)
	if err != nil {
		return 0, false
	}
	seconds, err := strconv.Atoi(u.Query().Get("timeoutSeconds"))
	if err != nil || seconds <= 0 || seconds > 1<<30 {
		return 0, false
	}
	return history.Time(seconds) * time.Second, true
}

// unaffected reports whether nothing disturbed the parts on which a forwarded operation depends:
// the link of the client, both processes, the link between them, and their links to etcd, which
// feeds watches. The time within Staleness counts too, because a connection may break shortly after
// a fault, and a process may end shortly before the run notices.
func (f *Facts) unaffected(o *observation) bool {
	w := o.window.widen(f.bounds.Staleness)
	if span, whole := o.asked.line.during(w); !whole || span.phase != phaseReady {
		return false
	}
	if !f.undisturbed(client, o.op.Server, w) || !f.undisturbed(o.op.Server, etcd, w) {
		return false
	}
	return !slices.ContainsFunc(f.handlers(o), func(peer *server) bool {
		r, _ := f.reach(o.op.Server, peer.name, w)
		return r != reachOpen || !f.undisturbed(peer.name, etcd, w)
	})
}

// handlers returns the peers that may have handled an operation: those with a hop, or if there is
// no such hop, all that serve or may serve the resource.
func (f *Facts) handlers(o *observation) []*server {
	var out []*server
	for _, h := range o.hops {
		if s := f.byName[h.Server]; s != nil && s != o.asked {
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, p := range o.capable {
		out = append(out, p.server)
	}
	return append(out, o.unsure...)
}

// creations returns the operations that surely created an object, by resource, in time order.
func (f *Facts) creations() map[groupResource][]*observation {
	all := map[groupResource][]*observation{}
	for _, o := range f.observations {
		op := o.op
		if op.Verb == "create" && op.Status == http.StatusCreated && op.Subresource == "" && op.Failure == history.FailureNone && !dryRun(op) {
			of := groupResource{op.GVR.Group, op.GVR.Resource}
			all[of] = append(all[of], o)
		}
	}
	return all
}

// bringsEvents reports whether a watch that lasted must have delivered an event. Bookmarks cannot
// be demanded (k8s.io/apiserver, pkg/storage/cacher/cacher.go: "we don't provide any guarantees on
// sending bookmarks").
func (f *Facts) bringsEvents(o *observation, creations map[groupResource][]*observation) bool {
	if strings.Contains(o.op.Path, "Selector=") || strings.Contains(o.op.MediaType, "cbor") {
		return false // the object may not match, or events cannot be counted
	}
	delayed := func(s *server) bool { return !f.undisturbed(o.op.Server, s.name, o.window.widen(f.bounds.Staleness)) }
	if slices.ContainsFunc(f.handlers(o), delayed) {
		return false
	}
	return slices.ContainsFunc(creations[groupResource{o.op.GVR.Group, o.op.GVR.Resource}], func(c *observation) bool {
		return c.op.Start >= later(o.op.Start, watchBegins) && later(c.op.End, eventDelay) <= o.op.End &&
			(o.op.Namespace == "" || o.op.Namespace == c.op.Namespace)
	})
}
