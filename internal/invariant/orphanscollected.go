package invariant

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
)

var orphansCollected = Invariant{
	Name:  "OrphansCollected",
	Grade: GradeCore,
	Sentence: "Within a bounded time after the last owner of an object is gone and the last disturbance is over, the object is " +
		"deleted, or no longer names an owner.",
	Source: "KEP-4020, Motivation and Goals: a request is handled by an apiserver that can serve it, so the garbage collector finds every " +
		"object; Kubernetes' documentation of garbage collection. The bound (60 s unless a run says otherwise) is ours: twice the time after " +
		"which the garbage collector looks for new resources",
	judge:    judgeOrphansCollected,
	pressure: []pressure{owners},
}

func judgeOrphansCollected(f *Facts) *tally {
	t := newTimedTally(f)
	early, idle, hidden := 0, 0, 0
	slowest := history.Time(-1)
	for _, o := range f.objects.all {
		if !f.owned(o) {
			continue
		}
		for _, orphan := range f.orphaned(o) {
			due := f.due(orphan.from)
			switch {
			case orphan.to <= due:
				slowest = max(slowest, orphan.to-orphan.from)
				t.rule(nil, rulingRight)
			case f.finish < due:
				early++
				t.rule(nil, rulingOut)
			case !f.atWork(due):
				idle++
				t.rule(nil, rulingOut)
			case !f.findable(orphan.owner, orphan.from, due), !f.findable(orphan.state, orphan.from, due):
				hidden++
				t.rule(nil, rulingNone)
			default:
				t.rule(nil, rulingWrong)
				t.leaked(orphan, due)
			}
		}
	}
	if slowest >= 0 {
		t.fact("slowest collection", clock(slowest))
	}
	t.fact("orphans for which the run ended too early", early)
	t.fact("orphans of kinds that no server served", hidden)
	t.doubtLate(early)
	t.doubtIdle(idle)
	return t
}

// orphan is a time in which an object had owners and all of them were gone. It ends when the object
// begins to be deleted, or gets other owners or none.
type orphan struct {
	window
	state history.Object // at its beginning
	owner history.Object // the owner that was removed last
}

// orphaned returns these times. The run must have seen the removal of an owner, because otherwise
// the time of the removal is unknown.
func (f *Facts) orphaned(o *object) []orphan {
	var out []orphan
	var current *orphan
	end := func(at history.Time) {
		if current != nil {
			current.to = at
			out = append(out, *current)
			current = nil
		}
	}
	for i, change := range o.changes {
		next := forever
		if i+1 < len(o.changes) {
			next = o.changes[i+1].At
		}
		removed, all := f.ownersRemoved(change)
		if change.Gone || change.Deleting || !all {
			end(change.At)
			continue
		}
		if removed.Revision > change.Revision { // an owner existed at that time
			end(change.At)
		}
		if from := max(change.At, removed.At); current == nil && from < next {
			current = &orphan{window{from, forever}, change, removed}
		}
	}
	end(forever)
	return out
}

// ownersRemoved is the last removal of an owner. all is true if the dependent then has no owner
// left.
func (f *Facts) ownersRemoved(dependent history.Object) (last history.Object, all bool) {
	if ownerUnknown(dependent) {
		return last, false
	}
	for _, reference := range dependent.Owners {
		o, ok := f.owner(dependent, reference)
		switch {
		case !ok: // such an owner never counts
		case o.remains():
			return last, false
		case o.last().Revision > last.Revision:
			last = o.last()
		}
	}
	return last, last.Gone
}

// leaked counts an orphan that was not collected in time.
func (t *tally) leaked(orphan orphan, due history.Time) {
	what := fmt.Sprintf("is still in etcd when the run ends at %s", clock(t.facts.finish))
	if orphan.to != forever {
		what = fmt.Sprintf("was collected only at %s", clock(orphan.to))
	}
	owner := orphan.owner
	t.harmed(harm{
		wrong: "an orphan was not collected", cause: fmt.Sprintf("%s outlived its owner %s", titled(orphan.state), titled(owner)),
		at: due, object: owner, misled: t.facts.keptFrom(garbageCollector, t.facts.objects.byUID[owner.UID], owner.At, due),
		graph: []history.Object{owner, orphan.state},
		sentence: fmt.Sprintf(
			"%s was removed at %s (revision %d of etcd), and the last disturbance was over at %s. Its dependent %s %s, when it had to be "+
				"gone by %s.",
			titled(owner), clock(owner.At), owner.Revision, clock(t.facts.lastDisturbance()), titled(orphan.state), what, clock(due)),
	})
}
