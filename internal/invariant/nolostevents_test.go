package invariant

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// teller adds the deliveries of one informer of gadgets through a server. The server is empty for
// the load balancer.
type teller struct {
	*story
	server string
	gvr    history.GVR
}

func (s *story) informer(at float64, server string) *teller {
	return (&teller{s, server, gadgets}).tell(at, history.DeliveryStarted, 0)
}

func (t *teller) tell(at float64, kind history.DeliveryKind, revision int64, objects ...history.Version) *teller {
	d := history.Delivery{
		Informer: "gadgets through " + t.server, Index: len(t.h.Deliveries) + 1, Server: t.server, GVR: t.gvr, At: sec(at), Kind: kind, Objects: objects,
	}
	if revision > 0 {
		d.ResourceVersion = strconv.FormatInt(revision, 10)
	}
	t.h.Deliveries = append(t.h.Deliveries, d)
	return t
}

// got is a version of gadget name.
func got(name string, revision int64) history.Version {
	return history.Version{Name: name, UID: "uid-" + name, ResourceVersion: strconv.FormatInt(revision, 10)}
}

func (t *teller) list(at float64, revision int64, objects ...history.Version) *teller {
	return t.tell(at, history.DeliveryListed, revision, objects...)
}

func (t *teller) event(at float64, kind history.DeliveryKind, name string, revision int64) *teller {
	return t.tell(at, kind, revision, got(name, revision))
}

func (t *teller) refused(at float64, status int) *teller {
	t.tell(at, history.DeliveryFailed, 0)
	t.h.Deliveries[len(t.h.Deliveries)-1].Status = status
	return t
}

// end ends the informer.
func (t *teller) end() *story { return t.tell(199, history.DeliveryEnded, 0).story }

func TestNoLostEvents(t *testing.T) {
	const (
		name                     = "NoLostEvents"
		added, modified, deleted = history.DeliveryAdded, history.DeliveryModified, history.DeliveryDeleted
	)
	touch := func(o *history.Object) { o.Finalizers = nil }
	// Revisions 100 to 105: x is made, y is made, x is changed, y is removed, z is made, x is
	// changed.
	etcd := func() *story {
		return tell(name).ask(190, "c", widgets, 200).put(10, gadget("x")).put(11, gadget("y")).change(20, "x", touch).remove(21, "y").put(22, gadget("z")).change(23, "x", touch)
	}
	// The informer gets all of these changes.
	whole := func() *teller {
		return etcd().informer(5, "b").list(12, 101, got("x", 100), got("y", 101)).event(20, modified, "x", 102).event(21, deleted, "y", 103).
			event(22, added, "z", 104).event(23, modified, "x", 105)
	}
	fails := func(checked, violations int, cause, sentence string) want {
		return want{outcome: OutcomeFail, checked: checked, violations: violations, cause: cause, sentence: sentence}
	}
	checkStories(t, name, []storyCase{
		{"each change once, in order", whole().end(), want{outcome: OutcomePass, checked: 5 + 6, fact: "events that they got: 4"}},
		{"a list, and nothing to tell after it", etcd().informer(5, "b").list(30, 105, got("x", 105), got("z", 104)).end(), want{outcome: OutcomePass, checked: 1 + 6}},
		{"a new list stands for the events that were missed",
			etcd().informer(5, "b").list(12, 101, got("x", 100), got("y", 101)).refused(15, 503).list(30, 105, got("x", 105), got("z", 104)).end(),
			want{outcome: OutcomePass, checked: 2 + 6, fact: "lists that they got: 2"}},
		{"the same list again", whole().list(30, 105, got("x", 105), got("z", 104)).end(), want{outcome: OutcomePass, checked: 6 + 6}},
		{"a bookmark at the end", whole().tell(60, history.DeliveryBookmark, 180).end(), want{outcome: OutcomePass, checked: 6 + 6}},
		{"through the load balancer", etcd().informer(5, "").list(30, 105, got("x", 105), got("z", 104)).end(),
			want{outcome: OutcomePass, checked: 1 + 6}},
		{"made again under the same name", etcd().put(40, again("y")).informer(5, "b").list(30, 105, got("x", 105), got("z", 104)).
			tell(40, added, 106, history.Version{Name: "y", UID: "uid-again-y", ResourceVersion: "106"}).end(), want{outcome: OutcomePass, checked: 2 + 7}},

		{"an event is lost", etcd().informer(5, "b").list(12, 101, got("x", 100), got("y", 101)).event(20, modified, "x", 102).event(22, added, "z", 104).event(23, modified, "x", 105).end(),
			fails(4+6, 1, "an event was lost, through b", "was told at 22s of revision 104, and never of what happened before: Gadget y was removed in revision 103, at 21s")},
		{"two are lost", etcd().informer(5, "b").list(12, 101, got("x", 100), got("y", 101)).event(22, added, "z", 104).event(23, modified, "x", 105).end(),
			fails(4+6, 2, "an event was lost", "revision 102")},
		{"a bookmark passes over an event", etcd().informer(5, "b").list(12, 101, got("x", 100), got("y", 101)).tell(30, history.DeliveryBookmark, 102).
			list(31, 105, got("x", 105), got("z", 104)).end(), fails(3+6, 1, "an event was lost", "revision 102")},
		{"an event comes twice", whole().event(24, modified, "x", 105).end(), fails(6+6, 1, "an event came twice", "which it had been told before")},
		{"an event repeats an object of the list", etcd().informer(5, "b").list(30, 105, got("x", 105), got("z", 104)).event(31, added, "z", 104).end(),
			fails(2+6, 1, "an event came twice", "that z was added in revision 104")},
		{"a deletion comes twice", whole().event(24, deleted, "y", 103).end(), fails(6+6, 1, "an event came twice", "y was deleted")},
		{"an object goes back", whole().event(24, modified, "x", 102).end(), fails(6+6, 1, "an object went back to an older version", "after it had got revision 105")},
		{"an event about an object that was removed before the list", etcd().informer(5, "b").list(30, 105, got("x", 105), got("z", 104)).event(31, deleted, "y", 103).end(),
			fails(2+6, 1, "an event came after a later one", "everything up to revision 105")},
		{"a change that etcd never had", whole().put(50, gadget("w"), gadget("w2")).informerAgain().event(60, modified, "x", 106).event(61, added, "w2", 107).end(),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "an event was about a change that etcd never had"}},
		{"a removal is told as a change", etcd().informer(5, "b").list(20, 102, got("x", 102), got("y", 101)).event(21, modified, "y", 103).event(22, added, "z", 104).
			event(23, modified, "x", 105).end(), fails(4+6, 1, "an event was of the wrong type", "Gadget y was removed")},
		{"a list lacks an object", etcd().informer(5, "b").list(30, 105, got("x", 105)).end(), fails(1+6, 1, "a list lacked an object", "without z")},
		{"a list has an object that was removed", etcd().informer(5, "b").list(30, 105, got("x", 105), got("y", 101), got("z", 104)).end(),
			fails(1+6, 1, "a list had an object that is not in etcd", "though Gadget y was removed in revision 103")},
		{"a list has an object that never existed", etcd().informer(5, "b").list(30, 105, got("x", 105), got("z", 104), got("ghost", 104)).end(),
			fails(1+6, 1, "a list had an object that is not in etcd", "with ghost, which etcd did not have")},
		{"a list has an old version", etcd().informer(5, "b").list(30, 105, got("x", 102), got("z", 104)).end(),
			fails(1+6, 1, "a list had another version of an object than etcd", "with revision 102 of x, though Gadget x was written in revision 105")},
		{"a new list is older", whole().list(30, 102, got("x", 102), got("y", 101)).end(),
			fails(6+6, 1, "a list was older than what the informer had", "a list of revision 102, after it had been told of everything up to revision 105")},
		{"the last event never comes", etcd().informer(5, "b").list(22.5, 104, got("x", 102), got("z", 104)).end(),
			fails(1+6, 1, "an event did not come in time", "had not been told by 1m53s that Gadget x was written in revision 105, at 23s")},
		{"the last event comes late", etcd().informer(5, "b").list(22.5, 104, got("x", 102), got("z", 104)).event(114, modified, "x", 105).end(),
			fails(2+6, 1, "an event did not come in time", "")},
		{"no list at all, refused by a server that lacks the resource", etcd().informer(5, "b").refused(6, 404).refused(180, 404).end(),
			fails(1, 1, "an informer got no list, through b", "its last request, at 3m0s, was answered 404")},
		{"no list at all, and no answer", etcd().informer(5, "b").refused(6, 0).end(), fails(1, 1, "an informer got no list", "got no answer")},
		{"no list at all through the load balancer", etcd().informer(5, "").refused(6, 404).end(), fails(1, 1, "an informer got no list", "")},

		{"it comes just in time", etcd().informer(5, "b").list(22.5, 104, got("x", 102), got("z", 104)).event(113, modified, "x", 105).end(), want{outcome: OutcomePass, checked: 2 + 6}},
		{"the informer began late, so there is more time", etcd().informer(110, "b").list(198, 105, got("x", 105), got("z", 104)).end(), want{outcome: OutcomePass, checked: 1 + 6}},
		{"a fault was on, so there is more time", etcd().cut("b", "a", 30, 60).informer(5, "b").list(22.5, 104, got("x", 102), got("z", 104)).event(149, modified, "x", 105).end(),
			want{outcome: OutcomePass, checked: 2 + 6}},
		{"a fault was on, and the time after it is over", etcd().cut("b", "a", 30, 60).informer(5, "b").list(22.5, 104, got("x", 102), got("z", 104)).event(151, modified, "x", 105).end(),
			fails(2+6, 1, "an event did not come in time", "")},
		{"an event is lost while a fault is on", etcd().cut("b", "a", 20, 60).informer(5, "b").list(12, 101, got("x", 100), got("y", 101)).event(20, modified, "x", 102).
			event(22, added, "z", 104).event(23, modified, "x", 105).end(), fails(4+6, 1, "an event was lost", "")},
		{"an event is lost while the machine is overloaded", etcd().slow(18, 25, "a", "b", "c").informer(5, "b").list(12, 101, got("x", 100), got("y", 101)).event(20, modified, "x", 102).
			event(22, added, "z", 104).event(23, modified, "x", 105).end(), fails(4+6, 1, "an event was lost", "")},

		{"no list, because the server is down", etcd().kill("b", 100).informer(5, "b").refused(6, 0).end(), want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},
		{"no list, because the server of the resource is down", etcd().kill("a", 100).informer(5, "b").refused(6, 503).end(), want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},
		{"no list, because no server serves the resource", func() *story { s := etcd().informer(5, "b").refused(6, 404).end(); withoutA(s); return s }(),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},
		{"no list, and the run ends too early", etcd().cut("b", "a", 30, 120).informer(5, "b").refused(6, 503).end(),
			want{outcome: OutcomeInconclusive, reason: "ended too early"}},
		{"the machine was overloaded when it was due", etcd().slow(92, 98, "a", "b", "c").informer(5, "b").refused(6, 503).end(),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "overloaded"}},
		{"of a resource that the history of etcd leaves out", (&teller{etcd(), "b", leases}).tell(5, history.DeliveryStarted, 0).list(30, 105, got("l", 99)).end(),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},
		{"no informer", etcd(), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
	})
}

// informed makes an informer list all gadgets at the end. If wrong is set, the first is left out.
func (s *story) informed(wrong bool) *story {
	newest := map[string]history.Object{}
	var names []string
	for _, o := range s.h.Objects {
		if o.Kind != "Gadget" {
			continue
		}
		if _, known := newest[o.Name]; !known {
			names = append(names, o.Name)
		}
		newest[o.Name] = o
	}
	var all []history.Version
	for _, name := range names {
		if o := newest[name]; !o.Gone {
			all = append(all, got(name, o.Revision))
		}
	}
	if wrong {
		all = all[1:]
	}
	return s.informer(5, "b").list(107, s.h.Objects[len(s.h.Objects)-1].Revision, all...).end()
}

// again is a gadget with the name of an earlier gadget, made later.
func again(name string) history.Object {
	o := gadget(name)
	o.UID = "uid-again-" + name
	return o
}

// informerAgain continues the informer through b.
func (s *story) informerAgain() *teller { return &teller{s, "b", gadgets} }

// withoutA makes the new server serve only what the old servers serve.
func withoutA(s *story) {
	for i := range s.h.Served {
		s.h.Served[i].Document = oldDoc.Hash
	}
}

func TestWhatAnInformerWasToldIsSigned(t *testing.T) {
	s := tell("NoLostEvents").runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").put(10, gadget("x"))
	for server, want := range map[string]Signature{
		"b": {Invariant: "NoLostEvents", Mechanism: MechanismInformer, Roles: RoleOlder, Answer: "404 resource", Reach: ReachAll, Wrong: "an informer got no list"},
		"":  {Invariant: "NoLostEvents", Mechanism: MechanismInformer, Wrong: "an informer got no list"},
	} {
		s.h.Deliveries = nil
		e := verdictOf(t, s.informer(5, server).refused(6, 404).end().h, "NoLostEvents").Evidence[0]
		if e.Signature != want || e.Asked != server || e.GVR != gadgets {
			t.Errorf("through %q: %+v, asked %q, %s", server, e.Signature, e.Asked, e.GVR)
		}
	}
}

func TestEventsOfWhatTheServerLacksArePressure(t *testing.T) {
	for server, events := range map[string]int{"a": 0, "b": 2, "": 0} {
		s := tell("NoLostEvents").put(10, gadget("x")).remove(20, "x").informer(5, server).list(6, 99).event(10, history.DeliveryAdded, "x", 100).
			event(20, history.DeliveryDeleted, "x", 101).end().need(history.Pressure{Events: 3})
		if got := NewFacts(s.h).pressure.Events; got != events {
			t.Errorf("through %q: %d events, want %d", server, got, events)
		}
		reason := fmt.Sprintf("too little pressure: %d of at least 3 events that informers got", events)
		inconclusive := want{outcome: OutcomeInconclusive, checked: 5, reason: reason}
		inconclusive.check(t, verdictOf(t, s.h, "NoLostEvents"))
	}
}

// A server that still answers 404 long after a cut began to do so because of the cut.
func TestALateEventHasTheCircumstancesOfTheRefusal(t *testing.T) {
	late := func(refusals func(*teller)) Signature {
		s := tell("NoLostEvents").runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").ask(190, "a", widgets, 200).put(10, gadget("x")).cut("b", "a", 20, 60).stop("c", 25).start("c", 30, oldDoc)
		i := s.informer(5, "b").list(12, 100, got("x", 100))
		s.change(40, "x", func(o *history.Object) { o.Finalizers = nil })
		refusals(i)
		return verdictOf(t, i.end().h, "NoLostEvents").Evidence[0].Signature
	}
	refused := Signature{
		Invariant: "NoLostEvents", Mechanism: MechanismInformer, Roles: RoleOlder, Reach: ReachAll, Wrong: "an event did not come in time",
		Answer: "404 resource", Before: ObstacleLink, Change: ChangeOther,
	}
	plain := refused
	plain.Answer, plain.Before, plain.Change = "", ObstacleNone, ChangeNone
	again := plain
	again.Answer = "404 resource"
	for name, c := range map[string]struct {
		refusals func(*teller)
		want     Signature
	}{
		"refused since the cut":                    {func(i *teller) { i.refused(31, 404).refused(61, 404).refused(120, 404) }, refused},
		"refused only long after the cut":          {func(i *teller) { i.refused(120, 404) }, again},
		"in between it was answered otherwise":     {func(i *teller) { i.refused(31, 404).refused(61, 503).refused(120, 404) }, again},
		"in between it got no answer":              {func(i *teller) { i.refused(31, 404).refused(61, 0).refused(120, 404) }, again},
		"refused only after the event was due":     {func(i *teller) { i.refused(180, 404) }, plain},
		"never refused":                            {func(*teller) {}, plain},
		"it was told of something after a refusal": {func(i *teller) { i.refused(31, 404).tell(70, history.DeliveryBookmark, 100) }, plain},
	} {
		if s := late(c.refusals); s != c.want {
			t.Errorf("%s:\n%+v, want\n%+v", name, s, c.want)
		}
	}
}
