package invariant

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// OrphansCollected and DeletionEnds share this file: it says until when controllers must have done
// their work.

// due is the time until which controllers must have acted on an event: Bounds.Collection after the
// event and after the last disturbance.
func (f *Facts) due(at history.Time) history.Time {
	return later(max(at, f.lastDisturbance()), f.bounds.Collection)
}

// looksAgain is a little longer than 30 s, the interval at which the garbage collector asks servers
// which resources exist (k8s.io/kubernetes, cmd/kube-controller-manager/app/core.go).
const looksAgain = 40 * time.Second

// atWork reports whether controllers ran shortly before a time. If they did not, what they have not
// done says nothing about the servers.
func (f *Facts) atWork(until history.Time) bool {
	collects := controllerNamed(garbageCollector)
	return slices.ContainsFunc(f.requests, func(q history.Request) bool {
		return q.Start <= until && q.End >= until-looksAgain && collects(&q)
	})
}

// findable reports whether some server served the kind of an object until a time, since the last
// disturbance and since an event. Otherwise no controller can find such objects, whatever the
// servers answer. A kind that no document of the run has counts as findable.
func (f *Facts) findable(o history.Object, event, until history.Time) bool {
	w := window{min(max(event, f.lastDisturbance()), until), until}
	all := f.gvrsOf(o)
	return len(all) == 0 || slices.ContainsFunc(all, func(gvr history.GVR) bool {
		r := f.resource(key{gvr, ""})
		return slices.ContainsFunc(f.servers, func(s *server) bool { return r.during(s, w).claim == claimYes })
	})
}

// unservable reports whether no server can have served the kind of an object during a window. A
// server that was killed still counts as one that serves it, because others must not take its
// resources for deleted. A kind that no document of the run has does not count as unservable.
func (f *Facts) unservable(o history.Object, w window) bool {
	all := f.gvrsOf(o)
	return len(all) > 0 && !slices.ContainsFunc(all, func(gvr history.GVR) bool {
		k := key{gvr, ""}
		return slices.ContainsFunc(f.servers, func(s *server) bool {
			lost := f.resource(k).during(s, w).lost
			return !s.surelyLacks(k, w) || lost == history.StateKilled || lost == history.StateCrashed
		})
	})
}

// gvrsOf are the resources of an object's kind, in all versions that documents of the run have.
func (f *Facts) gvrsOf(o history.Object) []history.GVR {
	return f.kinds[groupKind{groupOf(o.APIVersion), o.Kind}]
}

// before returns the last state of the object that was seen by a time, and whether the object
// existed then.
func (o *object) before(at history.Time) (state history.Object, exists bool) {
	for _, change := range o.changes {
		if change.At > at {
			break
		}
		state, exists = change, !change.Gone
	}
	return state, exists
}

// controllersFinalizers are the finalizers that controllers remove by themselves. Any other
// finalizer belongs to another client, which may take any time to remove it.
var controllersFinalizers = []string{"foregroundDeletion", "orphan", "kubernetes"}

// heldUp reports whether an object that is being deleted has to wait, at a time, for a client that
// is not a controller of Kubernetes. It waits for a finalizer that controllers do not remove, on
// the object or on a dependent that its foreground deletion waits for.
func (f *Facts) heldUp(o *object, at history.Time, seen map[*object]bool) bool {
	state, exists := o.before(at)
	if !exists || seen[o] {
		return false
	}
	seen[o] = true
	if slices.ContainsFunc(state.Finalizers, func(name string) bool { return !slices.Contains(controllersFinalizers, name) }) {
		return true
	}
	return slices.Contains(state.Finalizers, "foregroundDeletion") &&
		slices.ContainsFunc(f.objects.dependents[o.uid], func(dependent *object) bool {
			is, exists := dependent.before(at)
			blocks := slices.ContainsFunc(is.Owners, func(owner history.Owner) bool { return owner.UID == o.uid && owner.Blocks })
			return exists && blocks && f.heldUp(dependent, at, seen)
		})
}

// doubtIdle adds a doubt if controllers did not run.
func (t *tally) doubtIdle(idle int) {
	if idle > 0 {
		t.doubt("no controllers ran when %s had to be gone: no request of the garbage collector was seen for %s", counted(idle, "object"),
			clock(looksAgain))
	}
}

// doubtLate adds a doubt if nothing was judged because the run ended too early.
func (t *tally) doubtLate(early int) {
	if early > 0 && t.verdict.Checked == 0 {
		f := t.facts
		t.doubt("the run ended %s after the last disturbance: too early for %s, as %s are allowed", clock(f.finish-f.lastDisturbance()),
			counted(early, "object"), clock(f.bounds.Collection))
	}
}
