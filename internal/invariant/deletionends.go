package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var deletionEnds = Invariant{
	Name:  "DeletionEnds",
	Grade: GradeCore,
	Sentence: "Within a bounded time after the deletion of an object began and the last disturbance is over, the object is " +
		"gone. If a namespace cannot go, its conditions say what is in the way.",
	Source: "KEP-4020, Motivation and Goals: a request is handled by an apiserver that can serve it, so controllers find what deletion " +
		"waits for; Kubernetes' documentation of finalizers, of foreground deletion and of the conditions of a namespace. The bound is " +
		"that of OrphansCollected",
	judge: judgeDeletionEnds,
}

func judgeDeletionEnds(f *Facts) *tally {
	t := newTimedTally(f)
	early, idle, hidden, explained := 0, 0, 0, 0
	for _, o := range f.objects.all {
		i := slices.IndexFunc(o.changes, func(c history.Object) bool { return c.Deleting && !c.Gone })
		if i < 0 {
			continue // it was deleted at once, if at all
		}
		began, ended := o.changes[i], forever
		if !o.remains() {
			ended = o.last().At
		}
		due := f.due(began.At)
		state, _ := o.before(due)
		switch {
		case f.loadDeleted(o, began):
			t.rule(nil, rulingNone)
		case ended <= due:
			t.rule(nil, rulingRight)
		case f.finish < due:
			early++
			t.rule(nil, rulingOut)
		case f.heldUp(o, due, map[*object]bool{}):
			t.rule(nil, rulingNone)
		case isNamespace(state) && explains(state):
			explained++
			t.rule(nil, rulingRight)
		case !f.atWork(due):
			idle++
			t.rule(nil, rulingOut)
		case !f.findable(state, began.At, due):
			hidden++
			t.rule(nil, rulingNone)
		default:
			t.rule(nil, rulingWrong)
			t.stuck(state, began, due, ended)
		}
	}
	t.fact("namespaces that could not go, and say why", explained)
	t.fact("objects for which the run ended too early", early)
	t.fact("objects of kinds that no server served", hidden)
	t.doubtLate(early)
	t.doubtIdle(idle)
	return t
}

// explains reports whether a namespace says what keeps it. Source: k8s.io/api, core/v1, the types
// of NamespaceCondition; k8s.io/kubernetes,
// pkg/controller/namespace/deletion/status_condition_utils.go.
func explains(namespace history.Object) bool {
	return slices.ContainsFunc(namespace.Conditions, func(condition string) bool {
		return slices.Contains([]string{
			"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionContentFailure", "NamespaceDeletionGroupVersionParsingFailure",
			"NamespaceContentRemaining", "NamespaceFinalizersRemaining",
		}, condition)
	})
}

// stuck counts an object whose deletion did not end in time.
func (t *tally) stuck(state, began history.Object, due, ended history.Time) {
	what := fmt.Sprintf("it is still in etcd when the run ends at %s", clock(t.facts.finish))
	if ended != forever {
		what = fmt.Sprintf("it was gone only at %s", clock(ended))
	}
	wrong := "a deletion did not end"
	if isNamespace(state) {
		wrong = "the deletion of a namespace did not end, and its conditions do not say why"
	}
	waits := "has no finalizers"
	if len(state.Finalizers) > 0 {
		waits = "has the finalizers " + strings.Join(state.Finalizers, ", ")
	}
	t.harmed(harm{
		wrong: wrong, cause: fmt.Sprintf("%s could not be deleted in time", titled(state)), at: due, object: state,
		misled: t.facts.stoppedBy(state, began.At, due), graph: t.facts.waitsFor(state, due),
		sentence: fmt.Sprintf(
			"%s began to be deleted at %s (revision %d of etcd), and the last disturbance was over at %s. It had to be gone by %s; %s. It %s.",
			titled(state), clock(began.At), began.Revision, clock(t.facts.lastDisturbance()), clock(due), what, waits),
	})
}

// waitsFor returns an object that is being deleted, and a few of the objects that are in it or
// depend on it at a time.
func (f *Facts) waitsFor(state history.Object, at history.Time) []history.Object {
	const few = 10
	out := []history.Object{state}
	below := f.objects.dependents[state.UID]
	if isNamespace(state) {
		below = f.objects.in[state.Name]
	}
	for _, o := range below {
		if is, exists := o.before(at); exists && len(out) <= few {
			out = append(out, is)
		}
	}
	return out
}

// stoppedBy returns the answer that kept the controller from what a deletion waits for: the object
// itself, or an object that is in it or depends on it. It is nil if the history has no such answer.
func (f *Facts) stoppedBy(state history.Object, began, due history.Time) *wrongAnswer {
	controller := garbageCollector
	if isNamespace(state) {
		controller = namespaceController
	}
	for _, waits := range f.waitsFor(state, due) {
		if misled := f.keptFrom(controller, f.objects.byUID[waits.UID], began, due); misled != nil {
			return misled
		}
	}
	return nil
}
