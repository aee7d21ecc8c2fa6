package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestDeletionEnds(t *testing.T) {
	const name = "DeletionEnds"
	owner := gadget("o")
	blocking := func(o history.Object) history.Object {
		o.Owners[0].Blocks = true
		return o
	}
	born := func() *story { return tell(name).ask(190, "a", widgets, 200).put(10, owner) }
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1}
	passes := want{outcome: OutcomePass, checked: 1}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	says := func(condition string) func(*history.Object) {
		return func(o *history.Object) { o.Conditions = []string{condition} }
	}
	checkStories(t, name, []storyCase{
		{"it ends", born().mark(30, "o", "foregroundDeletion").remove(31, "o"), passes},
		{"it ends just in time", born().mark(30, "o", "foregroundDeletion").remove(90, "o"), passes},
		{"it ends too late", born().mark(30, "o", "foregroundDeletion").remove(90.1, "o"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "it was gone only at 1m30.1s. It has the finalizers foregroundDeletion."}},
		{"it never ends", born().mark(30, "o"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "Gadget o could not be deleted in time", sentence: "Gadget o began to be deleted at 30s (revision 101 of etcd), and the last disturbance was over at 1s. It had to be gone by 1m30s; it is still in etcd"}},
		{"it was being deleted when the run began", tell(name).put(1, func() history.Object { o := gadget("o"); o.Deleting = true; return o }()), fails},
		{"a finalizer of another client keeps it", born().mark(30, "o", "some/finalizer"), unexercised},
		{"the finalizer was removed", born().mark(30, "o", "some/finalizer").change(40, "o", func(o *history.Object) { o.Finalizers = nil }), fails},
		{"foreground deletion waits for a dependent that a finalizer of another client keeps",
			born().put(11, blocking(configMap("x", owner))).mark(30, "o", "foregroundDeletion").mark(31, "x", "some/finalizer"), unexercised},
		{"foreground deletion does not wait for that dependent",
			born().put(11, configMap("x", owner)).mark(30, "o", "foregroundDeletion").mark(31, "x", "some/finalizer"), fails},
		{"foreground deletion waits for a dependent that no client deletes", born().put(11, blocking(configMap("x", owner))).mark(30, "o", "foregroundDeletion"), fails},
		{"foreground deletion waits for a dependent that is held no more",
			born().put(11, blocking(configMap("x", owner))).mark(30, "o", "foregroundDeletion").mark(31, "x", "some/finalizer").remove(80, "x"),
			want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"two that wait for each other", born().put(11, func() history.Object { p := gadget("p"); p.Owners = blocking(configMap("", owner)).Owners; return p }()).
			change(12, "o", func(o *history.Object) { o.Owners = blocking(configMap("", gadget("p"))).Owners }).mark(30, "o", "foregroundDeletion").mark(30, "p", "foregroundDeletion"),
			want{outcome: OutcomeFail, checked: 2, violations: 2}},
		{"a namespace goes", tell(name).put(10, namespace("n")).mark(30, "n").remove(35, "n"), passes},
		{"a namespace stays, and says why", tell(name).put(10, namespace("n")).mark(30, "n").change(31, "n", says("NamespaceDeletionDiscoveryFailure")),
			want{outcome: OutcomePass, checked: 1, fact: "could not go, and say why: 1"}},
		{"a namespace stays, and says nothing", tell(name).put(10, namespace("n")).mark(30, "n"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "Namespace n began to be deleted"}},
		{"a namespace stays, and says something else", tell(name).put(10, namespace("n")).mark(30, "n").change(31, "n", says("Happy")), fails},
		{"a namespace says why too late", tell(name).put(10, namespace("n")).mark(30, "n").change(95, "n", says("NamespaceContentRemaining")), fails},
		{"a namespace had said why, and no longer does", tell(name).put(10, namespace("n")).mark(30, "n").change(31, "n", says("NamespaceContentRemaining")).
			change(40, "n", func(o *history.Object) { o.Conditions = nil }), fails},
		{"another object has such a condition", born().mark(30, "o").change(31, "o", says("NamespaceContentRemaining")), fails},
		{"the load deletes it", tell(name).put(10, configMap("x")).ask(30, "b", configMaps, 200, on("delete", "x")).mark(30.01, "x"), unexercised},
		{"the load deletes it, and it goes", tell(name).put(10, configMap("x")).ask(30, "b", configMaps, 200, on("delete", "x")).mark(30.01, "x").remove(31, "x"), unexercised},
		{"the load deletes another one", tell(name).put(10, configMap("x")).ask(30, "b", configMaps, 200, on("delete", "y")).mark(30.01, "x"), fails},
		{"a fault is on until late", born().cut("b", "a", 20, 120).mark(30, "o").remove(179, "o"), passes},
		{"the run ends too early after a fault", born().cut("b", "a", 20, 150).mark(30, "o"), want{outcome: OutcomeInconclusive, reason: "too early for 1 object"}},
		{"a fault is on until late, and there is no load", tell(name).put(10, owner).step("cut b→a", 20, 20.1).cut("b", "a", 20, 120).step("heal", 120, 120.1).
			mark(30, "o").remove(179, "o"), passes},
		{"removed at once", born().remove(30, "o"), unexercised},
	})
}

// The evidence of a deletion that does not end shows what the deletion waits for.
func TestWhatADeletionWaitsForIsShown(t *testing.T) {
	s := tell("DeletionEnds").put(10, namespace("n"), gadget("o")).put(11, configMap("x", gadget("o"))).mark(30, "n").mark(30, "o", "foregroundDeletion")
	for _, e := range verdictOf(t, s.h, "DeletionEnds").Evidence {
		if len(e.Objects) != 2 || e.Objects[1].Name != "x" {
			t.Errorf("%s: shown %+v", e.Cause, e.Objects)
		}
	}
}
