package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// noLostEvents rules by client-go's contract (k8s.io/client-go, tools/cache, Reflector; Kubernetes
// API concepts, efficient detection of changes):
//   - A list is the state of etcd at its resource version.
//   - A watch from there delivers every later change once, in the order of etcd's revisions.
//   - A bookmark says that nothing up to its resource version is missing.
//   - When a watch ends, the reflector watches again from its position, or lists again. It asks for
//     nothing older than its position (relistResourceVersion), from whichever server.
//   - An object of the same name with another UID is another object.
//
// So the changes between a reflector's position and a new list need no events of their own. Nothing
// else excuses a change that never arrives, arrives twice, or goes back.
//
// These rules do not depend on time. The last changes, after which an informer gets no more
// deliveries, must arrive within a bound, unless there is an obstacle.
//
// An informer that gets no list within the bound has lost every event, whatever the server answers.
// So a control plane without a proxy violates this invariant, because its older servers answer 404.
var noLostEvents = Invariant{
	Name:  "NoLostEvents",
	Grade: GradeCore,
	Sentence: "An informer receives every change of an object once and in order, whichever server passes the change on, and its " +
		"lists match etcd. It receives a change within a bounded time after the change and the last disturbance.",
	Source: "KEP-4020, Goals: a request is handled by an apiserver that can serve it; Kubernetes API concepts, efficient detection of " +
		"changes; the contract of client-go's reflectors. The bound (80 s unless a run says otherwise) is ours: that of Converges, and " +
		"the longest time that a reflector waits before it asks again",
	judge:    judgeNoLostEvents,
	pressure: []pressure{informed},
}

// reflectorWait is the longest time that a reflector waits before it asks again: 30 s, which random
// jitter can double (defaultBackoffMax and defaultBackoffJitter of k8s.io/client-go,
// tools/cache/reflector.go).
const reflectorWait = time.Minute

func judgeNoLostEvents(f *Facts) *tally {
	t := newTimedTally(f)
	changes := map[groupResource][]history.Object{}
	for _, o := range f.objects.all {
		of := groupResource{f.gvrOf(o.first()).Group, f.gvrOf(o.first()).Resource}
		changes[of] = append(changes[of], o.changes...)
	}
	for _, all := range changes {
		slices.SortFunc(all, changeOrder)
	}
	events, lists, early := 0, 0, 0
	for _, i := range f.informers {
		j := &listener{informer: i, tally: t, changes: changes[groupResource{i.gvr.Group, i.gvr.Resource}], has: map[string]int64{},
			watched: f.watchedFrom()}
		for n := range i.deliveries {
			d := &i.deliveries[n]
			switch {
			case isEvent(d):
				events++
			case d.Kind == history.DeliveryListed:
				lists++
			}
			j.hear(d)
		}
		early += j.inTime()
	}
	t.fact("informers", len(f.informers))
	t.fact("events that they got", events)
	t.fact("lists that they got", lists)
	t.fact("changes for which the run ended too early", early)
	if early > 0 && t.verdict.Checked == 0 {
		t.doubt("the run ended too early after the last disturbance: informers have %s to be told of a change", clock(f.informersBound()))
	}
	return t
}

// informersBound is the time within which a change must reach an informer.
func (f *Facts) informersBound() history.Time { return later(f.bounds.Convergence, reflectorWait) }

// watchedFrom is the first revision from which every change in etcd is known. The run does not know
// objects that were removed before it read etcd. watchedFrom is the first revision that the run
// surely saw when it was written, because the run had seen the object before.
func (f *Facts) watchedFrom() int64 {
	first := atEnd
	for _, o := range f.objects.all {
		if len(o.changes) > 1 {
			first = min(first, o.changes[1].Revision)
		}
	}
	return first
}

// listener follows the deliveries of one informer.
type listener struct {
	*informer
	*tally
	changes []history.Object // of the resource, by revision
	watched int64            // see watchedFrom

	listed   bool             // it has got a list
	position int64            // every change up to this revision was delivered, or should have been
	has      map[string]int64 // the last revision of each object since the last list, by UID
	heard    []heard          // the positions, in growing order
}

// heard says when an informer reached a position.
type heard struct {
	at       history.Time
	position int64
}

// hear processes the next delivery.
func (l *listener) hear(d *history.Delivery) {
	revision, ok := revisionOf(d.ResourceVersion)
	switch {
	case d.Kind == history.DeliveryStarted || d.Kind == history.DeliveryFailed || d.Kind == history.DeliveryEnded:
		return
	case !ok || d.Kind != history.DeliveryListed && !l.listed || len(l.changes) == 0 && len(d.Objects) > 0:
		// The version is no etcd revision, or the history leaves out the resource (as for Leases).
		l.listed = l.listed || d.Kind == history.DeliveryListed
		l.rule(nil, rulingUnknown)
		return
	}
	wrong := l.verdict.Violations + l.verdict.Overloaded + l.unrecorded
	switch {
	case d.Kind == history.DeliveryListed:
		l.list(d, revision)
	case isEvent(d):
		l.skipped(d, revision-1)
		l.event(d, revision)
	default:
		l.skipped(d, revision)
	}
	if wrong == l.verdict.Violations+l.verdict.Overloaded+l.unrecorded {
		l.rule(nil, rulingRight)
	}
	l.position = max(l.position, revision)
	l.heard = append(l.heard, heard{d.At, l.position})
}

// skipped finds the changes that a watch has left out when it reaches a revision.
func (l *listener) skipped(d *history.Delivery, revision int64) {
	from, _ := slices.BinarySearchFunc(l.changes, l.position+1, func(c history.Object, r int64) int { return cmp.Compare(c.Revision, r) })
	for _, c := range l.changes[from:] {
		if c.Revision > revision {
			return
		}
		l.wrong(d, c, "an event was lost", fmt.Sprintf("was told at %s of revision %s, and never of what happened before: %s", clock(d.At),
			d.ResourceVersion, happened(c)))
	}
}

// event checks an event that does not come from a list.
func (l *listener) event(d *history.Delivery, revision int64) {
	v := d.Objects[0]
	had, known := l.has[v.UID]
	l.has[v.UID] = max(had, revision)
	told := fmt.Sprintf("was told at %s that %s was %s in revision %d", clock(d.At), v.Name, d.Kind, revision)
	about := history.Object{Namespace: v.Namespace, Name: v.Name, UID: v.UID, Revision: revision, At: d.At}
	switch change, exists := l.change(v.UID, revision); {
	case known && revision == had:
		l.wrong(d, about, "an event came twice", told+", which it had been told before")
	case known && revision < had:
		l.wrong(d, about, "an object went back to an older version", fmt.Sprintf("%s, after it had got revision %d of it", told, had))
	case revision <= l.position:
		l.wrong(d, about, "an event came after a later one",
			fmt.Sprintf("%s, after it had been told of everything up to revision %d", told, l.position))
	case !exists && l.complete(revision):
		l.wrong(d, about, "an event was about a change that etcd never had", told+", which etcd never had")
	case exists && change.Gone != (d.Kind == history.DeliveryDeleted):
		l.wrong(d, change, "an event was of the wrong type", fmt.Sprintf("%s, but %s", told, happened(change)))
	}
}

// change is the change of an object in a revision.
func (l *listener) change(uid string, revision int64) (history.Object, bool) {
	o := l.facts.objects.byUID[uid]
	if o == nil {
		return history.Object{}, false
	}
	state, _ := o.at(revision)
	return state, state.Revision == revision
}

// complete reports whether all changes of a revision are known.
func (l *listener) complete(revision int64) bool {
	return revision >= l.watched && len(l.changes) > 0 && revision <= l.facts.objects.newest
}

// list checks a list against etcd, and then treats it as the state of the informer.
func (l *listener) list(d *history.Delivery, revision int64) {
	if l.listed && revision < l.position {
		l.wrong(d, history.Object{Revision: revision, At: d.At}, "a list was older than what the informer had",
			fmt.Sprintf("got at %s a list of revision %d, after it had been told of everything up to revision %d",
				clock(d.At), revision, l.position))
	}
	l.listed = true
	clear(l.has)
	of := fmt.Sprintf("got at %s a list of revision %d", clock(d.At), revision)
	for _, v := range d.Objects {
		got, _ := revisionOf(v.ResourceVersion)
		l.has[v.UID] = got
		o := l.facts.objects.byUID[v.UID]
		about := history.Object{Namespace: v.Namespace, Name: v.Name, UID: v.UID, Revision: got, At: d.At}
		if o == nil {
			if l.complete(revision) {
				l.wrong(d, about, "a list had an object that is not in etcd", of+" with "+v.Name+", which etcd did not have")
			}
			continue
		}
		switch state, exists := o.at(revision); {
		case state.Revision == 0: // the object was made later, or changed before the run looked
		case !exists:
			l.wrong(d, state, "a list had an object that is not in etcd", of+" with "+v.Name+", though "+happened(state))
		case state.Revision != got:
			l.wrong(d, state, "a list had another version of an object than etcd",
				fmt.Sprintf("%s with revision %d of %s, though %s", of, got, v.Name, happened(state)))
		}
	}
	seen := map[string]bool{}
	for _, c := range l.changes {
		if c.Revision > revision {
			break
		}
		if _, has := l.has[c.UID]; has || seen[c.UID] {
			continue
		}
		seen[c.UID] = true
		if state, exists := l.facts.objects.byUID[c.UID].at(revision); exists {
			l.wrong(d, state, "a list lacked an object", of+" without "+state.Name+", though "+happened(state))
		}
	}
}

// inTime checks whether every change reached the informer within the bound. It returns the number
// of changes for which the run ended too early.
func (l *listener) inTime() (early int) {
	f := l.facts
	ended, started := history.Time(-1), history.Time(-1)
	for _, d := range l.deliveries {
		switch d.Kind {
		case history.DeliveryStarted:
			started = d.At
		case history.DeliveryEnded:
			ended = d.At
		}
	}
	due := func(at history.Time) history.Time {
		return later(max(at, started, f.lastDisturbance()), f.informersBound())
	}
	if started < 0 {
		l.rule(nil, rulingUnknown)
		return 0
	}
	if !l.listed {
		l.late(history.Object{At: started, Revision: 0}, due(started), ended, "an informer got no list", l.refused())
		if ended < due(started) {
			return 1
		}
		return 0
	}
	for _, c := range l.changes {
		by := due(c.At)
		i, _ := slices.BinarySearchFunc(l.heard, c.Revision, func(h heard, r int64) int { return cmp.Compare(h.position, r) })
		switch {
		case i < len(l.heard) && l.heard[i].at <= by: // the rules above judge whether it came or was skipped
			l.rule(nil, rulingRight)
		case ended < by:
			early++
			l.rule(nil, rulingOut)
		default:
			l.late(c, by, ended, "an event did not come in time", fmt.Sprintf("had not been told by %s that %s", clock(by), happened(c)))
		}
	}
	return early
}

// late rules on a change that did not reach the informer in time.
func (l *listener) late(c history.Object, due, ended history.Time, wrong, complaint string) {
	switch {
	case ended < due:
		l.rule(nil, rulingOut)
	case !l.facts.canInform(l.informer, window{later(due, -l.facts.bounds.Convergence), due}):
		l.rule(nil, rulingUnknown)
	default:
		l.rule(nil, rulingWrong)
		l.violated(due, c, wrong, complaint, true)
	}
}

// refused says how the last request of the informer failed.
func (l *listener) refused() string {
	for _, d := range slices.Backward(l.deliveries) {
		switch {
		case d.Kind != history.DeliveryFailed:
		case d.Status == 0:
			return fmt.Sprintf("got no list; its last request, at %s, got no answer (%s)", clock(d.At), abridged(d.Message))
		default:
			return fmt.Sprintf("got no list; its last request, at %s, was answered %d (%s)", clock(d.At), d.Status, abridged(d.Message))
		}
	}
	return "got no list, and no answer"
}

// happened describes a change in etcd for people.
func happened(c history.Object) string {
	what := "written"
	if c.Gone {
		what = "removed"
	}
	return fmt.Sprintf("%s was %s in revision %d, at %s", titled(c), what, c.Revision, clock(c.At))
}

// wrong counts a violation that a slow machine cannot cause.
func (l *listener) wrong(d *history.Delivery, about history.Object, wrong, complaint string) {
	l.rule(nil, rulingWrong)
	l.violated(d.At, about, wrong, complaint, false)
}

func (l *listener) violated(at history.Time, about history.Object, wrong, complaint string, timed bool) {
	f := l.facts
	cause := wrong
	if l.server != "" {
		cause += ", through " + l.server
	}
	b := breach{Signature: f.informerSignature(l.informer, at, wrong, timed), asked: l.server, at: at, about: l.gvr.String(),
		cause: cause, untimed: !timed}
	l.violation(b, func() Evidence {
		e := Evidence{GVR: l.gvr, Sentence: fmt.Sprintf("The informer of %s %s.", l.name, complaint)}
		if about.UID != "" && about.Kind != "" {
			e.Objects = []history.Object{about}
		}
		return e
	})
}
