package invariant

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/internal/history"
)

// noFieldLost rules on every write that must remove nothing: the patches of the load, and the
// updates and patches of steps, which write what they have read. It compares the fields of the
// object in etcd before and after the write.
//
// Some writes are not judged. If a server itself serves a kind in a version that lacks a field, the
// server loses that field by Kubernetes' own design: it does not know the field, and the Mixed
// Version Proxy does not pass on requests for kinds that the asked server serves. Kubernetes'
// documentation of upgrades says to use no new fields before all servers are upgraded. A write that
// was passed on is judged, because the peer handled it and the proxy must not change it.
//
// noFieldLost also rules on the writes of steps that name fields by which versions differ
// ([history.Written]).
var noFieldLost = Invariant{
	Name:  "NoFieldLost",
	Grade: GradeCore,
	Sentence: "A patch loses no field that it does not name, whichever server passes it on. The same is true of an update that " +
		"writes back what its client read. A field that a write names is stored, or the write is refused, or no apiserver of the run would store " +
		"it. Without strict validation of fields, the report may name the field instead.",
	Source: "KEP-4020, Goals: a request is handled by an apiserver that can serve it, which knows all fields; Kubernetes API concepts, " +
		"updates and patches, and field validation",
	judge: judgeNoFieldLost,
}

// seenLate is the longest time between a change and the moment at which the run sees it in etcd.
const seenLate = 5 * time.Second

func judgeNoFieldLost(f *Facts) *tally {
	t := newTally(f)
	writes := f.writesByName()
	crossed, designed := 0, 0
	for _, o := range f.objects.all {
		for i := 1; i < len(o.changes); i++ {
			before, after := o.changes[i-1], o.changes[i]
			if after.Gone {
				continue
			}
			keeping, others := f.writersOf(writes[after.Name], before, after)
			if len(keeping) == 0 {
				continue // no write here has to keep all fields
			}
			if len(before.Fields) == 0 || len(after.Fields) == 0 {
				t.rule(nil, rulingUnknown)
				continue
			}
			lost := lostFields(before, after)
			switch {
			case len(lost) == 0:
				t.rule(nil, rulingRight)
				if slices.ContainsFunc(keeping, func(w *observation) bool { return w.skewed() }) {
					crossed++
				}
			case others:
				t.rule(nil, rulingOut) // another client may have removed the field
			case slices.ContainsFunc(keeping, f.olderItself):
				designed++
				t.rule(nil, rulingOut)
			default:
				t.rule(nil, rulingWrong)
				t.lostField(keeping[len(keeping)-1], before, after, lost)
			}
		}
	}
	named := t.judgeNamed()
	t.fact("writes of what the asked server does not serve, with all fields kept", crossed)
	t.fact("writes by which a server lost fields that are newer than itself", designed)
	if t.verdict.Checked > 0 && crossed+named == 0 && t.verdict.Violations == 0 {
		t.doubt("no update and no patch of what the asked server does not serve was judged")
	}
	return t
}

// judgeNamed rules on the writes of steps that name fields by which versions differ, and returns
// their number. A server may drop a field that its version does not know, by the recorded table of
// two versions. If another server stores the field, the write must not ask for strict validation:
// then the server says that it knows every field of the object.
func (t *tally) judgeNamed() (named int) {
	f := t.facts
	counted := map[string]bool{}
	for _, w := range f.written {
		i := slices.IndexFunc(f.byID[w.ID], func(q *history.Request) bool { return !q.Rerouted })
		if i < 0 {
			t.rule(nil, rulingUnknown)
			continue
		}
		q := f.byID[w.ID][i]
		if !succeeded(q.Status) && q.Status >= http.StatusInternalServerError {
			t.rule(nil, rulingOut)
			continue
		}
		named++
		if !succeeded(q.Status) || len(w.Lost) == 0 {
			t.rule(nil, rulingRight)
			continue
		}
		o := f.answered(q)
		why, explained := f.dropped(f.answeredBy(o), q.Start, q.GVR, w.Lost)
		wrong, strict := "a field was lost", strings.Contains(q.Path, "fieldValidation="+metav1.FieldValidationStrict)
		if explained {
			counted[fmt.Sprintf("of %s, %s", q.GVR.Resource, why)] = true
			if !strict || !why.beside {
				t.rule(nil, rulingRight)
				continue
			}
			wrong = "a field that another version stores was dropped in silence"
		}
		t.rule(nil, rulingWrong)
		t.violation(t.breach(o, *o.situation, wrong, fmt.Sprintf("%s by %s of %s", wrong, q.Verb, q.GVR.Resource)), func() Evidence {
			e := f.show(o, *o.situation, answer(o.op))
			e.Sentence += fmt.Sprintf(" The answer lacks %s, which the request names with a value.", abridged(strings.Join(w.Lost, ", ")))
			if explained {
				e.Sentence += fmt.Sprintf(" By the recorded comparison of both versions, %s.", why)
			}
			return e
		})
	}
	t.fact("writes that name fields by which versions differ", named)
	if len(counted) > 0 {
		t.fact("fields that the version of the answering server drops", strings.Join(slices.Sorted(maps.Keys(counted)), "; "))
	}
	return named
}

// answeredBy is the server that carried a request out: the last one that logged it.
func (f *Facts) answeredBy(o *observation) *server {
	if n := len(o.hops); n > 0 {
		return f.byName[o.hops[n-1].Server]
	}
	return o.asked
}

// lostFields are the fields that an object had before a change and not after it.
func lostFields(before, after history.Object) []string {
	return slices.DeleteFunc(slices.Clone(before.Fields), func(path string) bool { return slices.Contains(after.Fields, path) })
}

// write is a request that may have changed an object. keeps is true if the write must not lose any
// field.
type write struct {
	*observation
	keeps bool
}

// writesByName are the requests that may have changed an object, by its name.
func (f *Facts) writesByName() map[string][]write {
	all := map[string][]write{}
	add := func(o *observation, keeps bool) {
		if dryRun(o.op) || !carriedOut(o.op.Status) {
			return
		}
		keeps = keeps && o.op.Subresource == "" && succeeded(o.op.Status)
		all[o.op.Name] = append(all[o.op.Name], write{o, keeps})
	}
	for _, o := range f.observations {
		if changesFields(o.op.Verb) {
			add(o, o.op.Verb == "patch")
		}
	}
	for i := range f.requests {
		if q := &f.requests[i]; !q.Rerouted && changesFields(q.Verb) {
			add(f.answered(q), q.Own)
		}
	}
	return all
}

// changesFields reports whether a request of this verb may change fields of an object that exists.
func changesFields(verb string) bool { return verb == "update" || verb == "patch" }

// writersOf returns the writes that must keep all fields and may have made a change of an object.
// others says whether other writes may have made the change.
func (f *Facts) writersOf(candidates []write, before, after history.Object) (keeping []*observation, others bool) {
	during := window{later(before.At, -seenLate), later(after.At, settle)}
	for _, w := range candidates {
		if !during.overlaps(w.window) || !f.isOf(w.op.GVR, after) || w.op.Namespace != after.Namespace {
			continue
		}
		if w.keeps {
			keeping = append(keeping, w.observation)
		}
		others = others || !w.keeps
	}
	return keeping, others
}

// olderItself reports whether the asked server served the resource itself while a server of a newer
// version served the resource too.
func (f *Facts) olderItself(o *observation) bool {
	if o.local != claimYes {
		return false
	}
	asked := o.asked.line.at(o.op.Start).behaves()
	return slices.ContainsFunc(o.capable, func(p peer) bool {
		other := p.server.line.at(o.op.Start).behaves()
		return semver.IsValid(asked) && semver.IsValid(other) && semver.Compare(asked, other) < 0
	})
}

// lostField counts a write by which an object lost fields.
func (t *tally) lostField(o *observation, before, after history.Object, lost []string) {
	const wrong = "a field was lost"
	b := t.breach(o, *o.situation, wrong, wrong+" by "+o.op.Verb+" of "+titled(after))
	t.violation(b, func() Evidence {
		e := t.facts.show(o, *o.situation, answer(o.op))
		e.Sentence += fmt.Sprintf(" %s, which had been written in revision %d, lost %s in revision %d, at %s; the request does not name it.",
			titled(after), before.Revision, abridged(strings.Join(lost, ", ")), after.Revision, clock(after.At))
		e.Objects = []history.Object{before, after}
		return e
	})
}
