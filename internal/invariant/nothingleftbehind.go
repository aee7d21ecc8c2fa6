package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var nothingLeftBehind = Invariant{
	Name:  "NothingLeftBehind",
	Grade: GradeCore,
	Sentence: "When a namespace is gone, all its objects are gone from etcd. None of these objects went before its finalizers " +
		"were removed.",
	Source: "KEP-4020, Motivation: a false 404 misleads the namespace controller into leaving objects behind; Kubernetes' documentation of " +
		"namespaces: deleting a namespace deletes everything under it; and of finalizers",
	judge: judgeNothingLeftBehind,
}

func judgeNothingLeftBehind(f *Facts) *tally {
	t := newTally(f)
	namespaces, hidden := 0, 0
	for _, o := range f.objects.all {
		if !isNamespace(o.last()) {
			continue
		}
		if _, goes := o.deletion(); goes {
			for _, content := range f.contents(o) {
				t.ruleFinalizers(content)
			}
		}
		if gone := o.last(); gone.Gone {
			namespaces++
			for _, content := range f.contents(o) {
				left, exists := content.at(gone.Revision)
				if deletion, _ := o.deletion(); exists && f.unservable(left, window{deletion.At, gone.At}) {
					hidden++
					t.rule(nil, rulingNone)
					continue
				}
				if exists {
					t.rule(nil, rulingWrong)
					t.leftBehind(o, content, left)
					continue
				}
				t.rule(nil, rulingRight)
			}
		}
	}
	t.fact("namespaces that were deleted", namespaces)
	t.fact("objects of kinds that no server served", hidden)
	return t
}

// contents are the objects that were in a namespace when its deletion began, or later. Objects from
// the time before this namespace was made belong to an earlier namespace of the same name.
func (f *Facts) contents(namespace *object) []*object {
	from, to := namespace.first().Revision, namespace.last().Revision
	if change, ok := namespace.deletion(); ok {
		from = change.Revision
	}
	return slices.DeleteFunc(slices.Clone(f.objects.in[namespace.first().Name]), func(o *object) bool {
		if o.first().Revision > to || o.first().Revision < namespace.first().Revision && f.earlierNamespace(namespace) {
			return true
		}
		_, exists := o.at(from)
		return !exists && o.first().Revision < from
	})
}

// earlierNamespace reports whether there was a namespace of the same name before.
func (f *Facts) earlierNamespace(namespace *object) bool {
	return f.objects.namespaces[namespace.first().Name][0] != namespace
}

// leftBehind counts an object that still exists although its namespace is gone.
func (t *tally) leftBehind(namespace, content *object, left history.Object) {
	f := t.facts
	gone := namespace.last()
	var act *history.Request
	for i := range f.requests {
		q := &f.requests[i]
		if q.GVR.Resource == "namespaces" && q.GVR.Group == "" && q.Name == gone.Name && q.Subresource == "finalize" && !q.Rerouted &&
			carriedOut(q.Status) && namespace.until(gone).overlaps(window{q.Start, q.End}) {
			act = q // the last such request lets the namespace go
		}
	}
	sentence := []string{
		fmt.Sprintf("Namespace %s was gone at %s (revision %d of etcd), but %s, which was in it, stayed in etcd.", gone.Name, clock(gone.At),
			gone.Revision, titled(left)),
	}
	if act != nil {
		sentence = append(sentence, fmt.Sprintf("%s had found the namespace empty, and let it go through %s.", sender(act), act.Server))
	}
	for _, again := range f.objects.namespaces[gone.Name] {
		if _, exists := content.at(again.first().Revision); exists && again.first().Revision > gone.Revision {
			sentence = append(sentence,
				fmt.Sprintf("When a namespace %s was made again at %s, the object was in it.", gone.Name, clock(again.first().At)))
			break
		}
	}
	by, decided := controllerNamed(namespaceController), gone.At
	if act != nil {
		by, decided = sentLike(act), act.Start
	}
	misled := lastOf(f.denied(by, f.gvrOf(left), "", namespace.until(gone)), f.unlisted(by, f.gvrOf(left), window{decided, decided}))
	t.harmed(harm{
		wrong: "an object stayed when its namespace was gone", cause: fmt.Sprintf("%s stayed when its namespace was gone", titled(left)),
		at: gone.At, object: left, unseen: f.gvrOf(left), act: act, misled: misled, graph: []history.Object{gone, left},
		sentence: strings.Join(sentence, " "),
	})
}
