package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// ruleFinalizers rules on an object that is gone and had finalizers. A server removes such an
// object with the write that removes the last finalizer, so etcd never has it without finalizers
// (k8s.io/apiserver, pkg/registry/generic/registry/store.go, errEmptiedFinalizers). The servers'
// logs must have that write.
func (t *tally) ruleFinalizers(o *object) {
	gone, f := o.last(), t.facts
	if !gone.Gone || len(gone.Finalizers) == 0 {
		return
	}
	switch {
	case f.released(o, gone):
		t.rule(nil, rulingRight)
	case len(f.requests) == 0:
		t.rule(nil, rulingUnknown) // a history without the servers' logs
	default:
		t.rule(nil, rulingWrong)
		t.wentEarly(o, gone)
	}
}

// released reports whether a write may have removed the last finalizers of an object that is gone.
// The garbage collector and the namespace controller remove only their own.
func (f *Facts) released(o *object, gone history.Object) bool {
	w := window{o.first().At, later(gone.At, settle)}
	if len(o.changes) > 1 {
		w.from = later(o.changes[len(o.changes)-2].At, -settle)
	}
	foreign := slices.ContainsFunc(gone.Finalizers, func(name string) bool { return !slices.Contains(controllersFinalizers, name) })
	writes := func(verb, subresource string, gvr history.GVR, namespace, name string, status int) bool {
		return (verb == "update" || verb == "patch") && subresource == "" && f.isOf(gvr, gone) && namespace == gone.Namespace &&
			name == gone.Name && carriedOut(status)
	}
	collects := func(q *history.Request) bool {
		return controllerNamed(garbageCollector)(q) || controllerNamed(namespaceController)(q)
	}
	return slices.ContainsFunc(f.requests, func(q history.Request) bool {
		return w.overlaps(window{q.Start, q.End}) && writes(q.Verb, q.Subresource, q.GVR, q.Namespace, q.Name, q.Status) &&
			!strings.Contains(q.Path, "dryRun=") && (!foreign || !collects(&q))
	}) || slices.ContainsFunc(f.observations, func(r *observation) bool {
		return w.overlaps(r.window) && writes(r.op.Verb, r.op.Subresource, r.op.GVR, r.op.Namespace, r.op.Name, r.op.Status) && !dryRun(r.op)
	})
}

// wentEarly counts an object that went while it had finalizers.
func (t *tally) wentEarly(o *object, gone history.Object) {
	var act *history.Request
	if all := t.facts.deleters(o, gone); len(all) > 0 {
		act = all[len(all)-1]
	}
	t.harmed(harm{
		wrong: "an object went before its finalizers were removed",
		cause: fmt.Sprintf("%s went before its finalizers were removed", titled(gone)),
		at:    gone.At, object: gone, unseen: t.facts.gvrOf(gone), act: act, graph: []history.Object{gone},
		sentence: fmt.Sprintf("%s was removed at %s (revision %d of etcd). It had the finalizers %s, and nobody had removed them. %s",
			titled(gone), clock(gone.At), gone.Revision, strings.Join(gone.Finalizers, ", "), deletedBy(act)),
	})
}
