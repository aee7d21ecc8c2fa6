package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// OrphansCollected and DeletionEnds share this file: it says until when controllers must have done
// their work.

// due is the time until which controllers must have acted on an event: Bounds.Collection after the
// event and after the last disturbance.
func (f *Facts) due(at history.Time) history.Time {
	return later(max(at, f.lastDisturbance()), f.bounds.Collection)
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

// doubtLate adds a doubt if nothing was judged because the run ended too early.
func (t *tally) doubtLate(early int) {
	if early > 0 && t.verdict.Checked == 0 {
		f := t.facts
		t.doubt("the run ended %s after the last disturbance: too early for %s, as %s are allowed", clock(f.finish-f.lastDisturbance()),
			counted(early, "object"), clock(f.bounds.Collection))
	}
}
