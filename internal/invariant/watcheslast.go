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

// watchesLast is core although an apiserver may end any watch when it likes (timeoutSeconds is the most that a watch lasts): a watch is handled by
// a peer, as KEP-4020 demands of a request, for as long as that peer goes on with it. What ends sooner, on a way to which nothing was done and with
// both processes alive, was ended by the hop. So only watches that were passed on are judged, and of those only the ones that nothing can have befallen.
var watchesLast = Invariant{
	Name:  "WatchesLast",
	Grade: GradeCore,
	Sentence: "A watch that is passed on to a peer lasts as long as it was asked to, and brings an event when an object is created meanwhile, " +
		"unless something befalls one of the two apiservers.",
	Source:   "KEP-4020, Goals: a request is handled by an apiserver that can serve it; Kubernetes API concepts, efficient detection of changes",
	judge:    judgeWatches,
	pressure: []pressure{skewed},
}

const (
	// watchBegins is how long after its request a watch may not see yet what is created, and gone again.
	watchBegins = time.Second
	// eventDelay is how long an event may be under way through etcd and a watch cache, which take some milliseconds.
	eventDelay = 3 * time.Second
)

func judgeWatches(f *Facts) *tally {
	t := f.timely()
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
		if t.rule(r) {
			class, why := circumstance(f.candidates(o, o.situation), o.op.Server)
			t.violation(signature{o.op.Server, class, cause + ", " + why}, o.op.End, o.resource.String(), func() Evidence {
				return f.show(o, o.situation, answer(o.op)+"; "+cause)
			})
		}
	}
	t.fact("watches passed on that lasted", lasted)
	t.fact("of those, while an object was created", eventful)
	return t
}

// ruleWatch rules on how long an established watch lasted, and says what is wrong with it.
func (f *Facts) ruleWatch(o *observation) (ruling, string) {
	long, ok := established(o.op)
	// Of servers that are not the run's own nobody knows whether their processes ended.
	if !ok || f.run.External || o.resource == nil || !builtIn(o.op.GVR.Group) || !o.skewed() || !f.spared(o) {
		return rulingNone, ""
	}
	if o.op.End-o.op.Start+settle >= long {
		return rulingRight, ""
	}
	switch o.op.Failure {
	case history.FailureNone:
		return rulingWrong, "it ended before its time"
	case history.FailureReset, history.FailureTLS:
		return rulingWrong, "it broke off before its time"
	case history.FailureCanceled, history.FailureTimeout: // the client ended it
		return rulingNone, ""
	default:
		return rulingUnknown, ""
	}
}

// established reports whether the operation is a watch that has begun, and how long it was asked to last.
func established(op *history.Operation) (long history.Time, ok bool) {
	if op.Verb != "watch" || op.Status != http.StatusOK && op.Status != http.StatusSwitchingProtocols {
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

// builtIn reports whether a group is compiled into apiservers. Watches of a custom resource end when its definition changes, those of an aggregated
// API with its server.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// spared reports whether nothing was done to anybody who may have had a hand in an operation that was passed on: the client's way, both servers'
// processes, the way between them, and etcd, from which watches are fed. A connection may break soon after a fault for what happened in it, and an end
// be noticed a moment after its effects, so that what was shortly before and after counts as well.
func (f *Facts) spared(o *observation) bool {
	w := o.window.widen(f.bounds.Staleness)
	if span, whole := o.asked.line.during(w); !whole || span.phase != phaseReady {
		return false
	}
	if !f.undisturbed(client, o.op.Server, w) || !f.undisturbed(o.op.Server, etcd, w) {
		return false
	}
	for _, peer := range f.handlers(o) {
		way, _ := f.reach(o.op.Server, peer.name, w)
		if way != reachOpen || !f.undisturbed(peer.name, etcd, w) {
			return false
		}
	}
	return true
}

// handlers are the peers that may have handled an operation: those that say so, or else all that serve the resource or may.
func (f *Facts) handlers(o *observation) []*server {
	var all, told []*server
	if f.byID[o.op.ID] == o {
		for _, h := range f.hops[o.op.ID] {
			if s := f.byName[h.Server]; s != nil && s != o.asked {
				told = append(told, s)
			}
		}
	}
	if len(told) > 0 {
		return told
	}
	for _, p := range o.capable {
		all = append(all, p.server)
	}
	return append(all, o.unsure...)
}

// creations are the operations that have created an object for certain, by resource, in time order.
func (f *Facts) creations() map[groupResource][]*observation {
	all := map[groupResource][]*observation{}
	for _, o := range f.observations {
		op := o.op
		if op.Verb == "create" && op.Status == http.StatusCreated && op.Subresource == "" && op.Failure == history.FailureNone && !strings.Contains(op.Path, "dryRun") {
			of := groupResource{op.GVR.Group, op.GVR.Resource}
			all[of] = append(all[of], o)
		}
	}
	return all
}

// bringsEvents reports whether a watch that lasted must have brought an event. A bookmark is none that could be demanded: an apiserver sends them as it likes
// (k8s.io/apiserver, pkg/storage/cacher/cacher.go: "we don't provide any guarantees on sending bookmarks").
func (f *Facts) bringsEvents(o *observation, creations map[groupResource][]*observation) bool {
	if strings.Contains(o.op.Path, "Selector=") || strings.Contains(o.op.MediaType, "cbor") {
		return false // it may not match, or its events cannot be counted
	}
	if !f.undisturbedHandlers(o) {
		return false
	}
	return slices.ContainsFunc(creations[groupResource{o.op.GVR.Group, o.op.GVR.Resource}], func(c *observation) bool {
		return c.op.Start >= later(o.op.Start, watchBegins) && later(c.op.End, eventDelay) <= o.op.End &&
			(o.op.Namespace == "" || o.op.Namespace == c.op.Namespace)
	})
}

// undisturbedHandlers reports whether nothing delayed what came from the peers.
func (f *Facts) undisturbedHandlers(o *observation) bool {
	return !slices.ContainsFunc(f.handlers(o), func(s *server) bool { return !f.undisturbed(o.op.Server, s.name, o.window.widen(f.bounds.Staleness)) })
}
