package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var noWrongfulDeletion = Invariant{
	Name:     "NoWrongfulDeletion",
	Grade:    GradeCore,
	Sentence: "No controller deletes an object as garbage while one of its owners exists.",
	Source: "KEP-4020, Motivation: a false 404 misleads the garbage collector into deleting what it must keep; Kubernetes' documentation " +
		"of garbage collection: dependents are deleted when their owners are gone",
	judge:    judgeNoWrongfulDeletion,
	pressure: []pressure{owners},
}

func judgeNoWrongfulDeletion(f *Facts) *tally {
	t := newTally(f)
	kept, deleted := 0, 0
	for _, o := range f.objects.all {
		if !f.owned(o) {
			continue
		}
		change, ended := o.deletion()
		if !ended {
			if _, living := f.livingOwner(o.last(), atEnd); living && o.remains() && !o.last().Deleting {
				kept++
				t.rule(nil, rulingRight)
			}
			continue
		}
		owner, living := f.livingOwner(change, change.Revision)
		switch {
		case !living && ownerUnknown(change):
			t.rule(nil, rulingUnknown)
		case !living:
			deleted++
			t.rule(nil, rulingRight)
		case f.meant(o, change):
			t.rule(nil, rulingNone)
		default:
			t.rule(nil, rulingWrong)
			t.deletedWrongfully(o, change, owner)
		}
	}
	t.fact("objects kept whose owner exists", kept)
	t.fact("objects deleted whose owners were gone or going", deleted)
	return t
}

// meant reports whether the deletion of this very object was intended, whatever its owners are. It
// is true in three cases: the load, a step of the run or a person asked for it; its namespace or
// its definition was being deleted; or a controller asked for it that manages such objects for such
// an owner, such as that of a ReplicaSet which needs fewer Pods.
func (f *Facts) meant(o *object, change history.Object) bool {
	return f.loadDeleted(o, change) || f.namespaceGoes(change) || f.definitionGoes(change) ||
		slices.ContainsFunc(f.deleters(o, change), func(q *history.Request) bool { return q.Own || mayPrune(q, change) })
}

// namespaceGoes reports whether the namespace of an object was being deleted, or gone, when the
// object changed.
func (f *Facts) namespaceGoes(change history.Object) bool {
	if change.Namespace == "" {
		return false
	}
	state, exists, known := f.namespaceOf(change.Namespace, change.Revision)
	return known && (!exists || state.Deleting)
}

// definitionGoes reports whether the CustomResourceDefinition of an object was being deleted, or
// gone, when the object changed. The key of a custom resource is /registry/GROUP/RESOURCE/….
func (f *Facts) definitionGoes(change history.Object) bool {
	name := resourceInKey(change) + "." + groupOf(change.APIVersion)
	known, goes := false, false
	for _, o := range f.objects.all {
		if is := o.first(); is.Kind == "CustomResourceDefinition" && is.Name == name && is.Revision <= change.Revision {
			state, exists := o.at(change.Revision)
			known, goes = true, !exists || state.Deleting // if there are several, the last one made counts
		}
	}
	return known && goes
}

// deletedWrongfully counts the deletion of an object whose owner still exists.
func (t *tally) deletedWrongfully(o *object, change history.Object, owner *object) {
	f := t.facts
	var act *history.Request
	if all := f.deleters(o, change); len(all) > 0 {
		act = all[0]
	}
	is, _ := owner.at(change.Revision)
	var others []string
	for _, d := range f.objects.dependents[owner.uid] {
		if d != o {
			others = append(others, titled(d.first()))
		}
	}
	graph := fmt.Sprintf("The graph: %s → %s", titled(is), titled(change))
	if len(others) > 0 {
		graph += "; also → " + abridge(others, len(others))
	}
	t.harmed(harm{
		wrong: "an object was deleted whose owner exists",
		cause: fmt.Sprintf("%s was deleted, though its owner %s exists", titled(change), titled(is)),
		at:    change.At, object: change, unseen: f.gvrOf(is), act: act,
		misled: f.denied(sentLike(act), f.gvrOf(is), is.Name, owner.until(change)), graph: []history.Object{is, change},
		sentence: strings.Join([]string{
			fmt.Sprintf("%s was deleted at %s (revision %d of etcd), though its owner %s exists.", titled(change), clock(change.At),
				change.Revision, titled(is)),
			deletedBy(act), graph + ".",
		}, " "),
	})
}
