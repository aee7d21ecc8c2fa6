package invariant

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestClasses(t *testing.T) {
	run := func() *story {
		return tell().stop("c", 80).startUnknown("c", 90).served("c", 95, oldDoc).pause("a", 150, 160)
	}
	discovery := verb(history.VerbDiscovery)
	for _, c := range []struct {
		name  string
		story *story
		want  Class
	}{
		{"the server asked serves it", run().ask(40, "a", gadgets, 200), ClassServedHere},
		{"another one serves it", run().ask(40, "b", gadgets, 200), ClassSkewed},
		{"no server serves it", run().ask(40, "b", ghosts, 404), ClassUnserved},
		{"no server serves the subresource", run().ask(40, "a", gadgets, 404, sub("status")), ClassUnserved},
		{"discovery", run().discover(40, "a", "/apis", mergedDoc), ClassDiscovery},
		{"discovery of a group", run().ask(40, "b", history.GVR{Group: "apps"}, 200, discovery), ClassDiscovery},
		{"about no resource", run().ask(40, "a", history.GVR{}, 200), ClassDiscovery},
		{"before anything is known", run().ask(0.5, "a", gadgets, 200), ClassUnknown},
		{"it became known meanwhile", run().ask(0.5, "a", gadgets, 200, took(5)), ClassUnknown},
		{"the server asked is gone", run().ask(85, "c", widgets, 0), ClassDown},
		{"discovery of a server that is gone", run().ask(85, "c", history.GVR{}, 0, discovery), ClassDown},
		{"the server asked left meanwhile", run().ask(79, "c", widgets, 0, took(3)), ClassUnknown},
		{"the server asked is starting", run().ask(90.5, "c", widgets, 200), ClassUnknown},
		{"another one is starting, which might serve it", run().ask(90.5, "b", ghosts, 404), ClassUnknown},
		{"another one is starting, while a third serves it", run().ask(90.5, "b", gadgets, 200), ClassSkewed},
		{"another one is gone", run().ask(85, "b", ghosts, 404), ClassUnserved},
		{"another one is paused, and still serves it", run().ask(155, "b", gadgets, 503), ClassSkewed},
		{"the document of the asked server changes", run().changed("a", 98, 100, oldDoc).ask(99, "a", gadgets, 404), ClassUnknown},
		{"an unknown server", run().ask(40, "z", widgets, 200), ClassUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []Class
			for op, handled := range NewFacts(c.story.h).Handled() {
				class := handled.Class
				if op != &c.story.h.Operations[0] {
					t.Errorf("operation %+v is not the one in the history", op)
				}
				got = append(got, class)
			}
			if !slices.Equal(got, []Class{c.want}) {
				t.Errorf("classes %q, want %q", got, c.want)
			}
		})
	}
}

func TestClassesCanBeLeftEarly(t *testing.T) {
	for op := range NewFacts(tell().ask(41, "a", gadgets, 200).ask(40, "b", gadgets, 200).h).Handled() {
		if op.Server != "b" {
			t.Errorf("the first operation is about %s", op.Server)
		}
		break
	}
}

// A verdict names the operations that it found wrong, and no others.
func TestVerdictNamesWrongOperations(t *testing.T) {
	h := tell().cut("b", "a", 15, 40).ask(20, "b", gadgets, 404).ask(21, "b", gadgets, 503).ask(22, "b", pods, 404, sub("resize")).h
	v := noFalseNotFound.Judge(NewFacts(h))
	if want := []*history.Operation{&h.Operations[0], &h.Operations[2]}; !slices.Equal(v.Wrong, want) {
		t.Errorf("%d operations are wrong, want the first and the third", len(v.Wrong))
	}
}

func TestHandledSaysWhatARequestTests(t *testing.T) {
	h := tell().ask(20, "b", gadgets, 404).ask(21, "b", pods, 404, sub("resize")).discover(22, "a", "/apis", mergedDoc).h
	h.Hops = append(h.Hops, history.Hop{Operation: h.Operations[0].ID, Start: sec(20), End: sec(20.001), Entry: &history.Entry{Server: "b"}})
	var got []Mechanism
	hops := 0
	for _, handled := range NewFacts(h).Handled() {
		got, hops = append(got, handled.Mechanism), hops+len(handled.Hops)
	}
	if want := []Mechanism{MechanismResource, MechanismSubresource, MechanismDiscovery}; !slices.Equal(got, want) || hops != 1 {
		t.Errorf("mechanisms %q and %d hops, want %q and 1", got, hops, want)
	}
}
