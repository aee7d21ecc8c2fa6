package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// What OrphansCollected and DeletionEnds share: until when controllers must have done their work.

// due is until when controllers must have acted on what happened at a time: Bounds.Collection after
// it and after the last disturbance.
func (f *Facts) due(at history.Time) history.Time {
	return later(max(at, f.lastDisturbance()), f.bounds.Collection)
}

// before is the object as it was last seen by a time, and whether it existed then.
func (o *object) before(at history.Time) (state history.Object, exists bool) {
	for _, change := range o.changes {
		if change.At > at {
			break
		}
		state, exists = change, !change.Gone
	}
	return state, exists
}

// controllersFinalizers are those that controllers remove by themselves. Any other is somebody's
// own, who may take as long as they like.
var controllersFinalizers = []string{"foregroundDeletion", "orphan", "kubernetes"}

// heldUp reports whether an object that is being deleted has to wait, at a time, for somebody else than
// controllers: a finalizer of somebody's own, on the object or on a dependent that its foreground
// deletion waits for.
func (f *Facts) heldUp(o *object, at history.Time, seen map[*object]bool) bool {
	state, exists := o.before(at)
	if !exists || seen[o] {
		return false
	}
	seen[o] = true
	if slices.ContainsFunc(state.Finalizers, func(name string) bool { return !slices.Contains(controllersFinalizers, name) }) {
		return true
	}
	return slices.Contains(state.Finalizers, "foregroundDeletion") && slices.ContainsFunc(f.objects.dependents[o.uid], func(dependent *object) bool {
		is, exists := dependent.before(at)
		blocks := slices.ContainsFunc(is.Owners, func(owner history.Owner) bool { return owner.UID == o.uid && owner.Blocks })
		return exists && blocks && f.heldUp(dependent, at, seen)
	})
}

// doubtLate adds a doubt if nothing was judged because the run ended too early for it.
func (t *tally) doubtLate(early int) {
	if early > 0 && t.verdict.Checked == 0 {
		f := t.facts
		t.doubt("the run ended %s after the last disturbance: too early for %s, as %s are allowed", clock(f.finish-f.lastDisturbance()),
			counted(early, "object"), clock(f.bounds.Collection))
	}
}
