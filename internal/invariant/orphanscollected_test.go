package invariant

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

func TestOrphansCollected(t *testing.T) {
	const name = "OrphansCollected"
	owner := gadget("o")
	born := func() *story {
		return tell(name).ask(190, "a", widgets, 200).put(10, owner, gadget("p")).put(11, configMap("x", owner))
	}
	owners := func(all ...history.Object) func(*history.Object) {
		return func(o *history.Object) { o.Owners = configMap("", all...).Owners }
	}
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "ConfigMap n/x outlived its owner Gadget o"}
	passes := want{outcome: OutcomePass, checked: 1}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	checkStories(t, name, []storyCase{
		{"collected", born().remove(30, "o").remove(31, "x"), want{outcome: OutcomePass, checked: 1, fact: "slowest collection: 1s"}},
		{"collected just in time", born().remove(30, "o").remove(90, "x"), passes},
		{"collected too late", born().remove(30, "o").remove(90.1, "x"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "was collected only at 1m30.1s, when it had to be gone by 1m30s"}},
		{"never collected", born().remove(30, "o"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "Gadget o was removed at 30s (revision 103 of etcd), and the last disturbance was over at 1s. Its dependent ConfigMap n/x is still in etcd"}},
		{"collected, and waits for its finalizers, which is for DeletionEnds", born().remove(30, "o").mark(31, "x", "some/finalizer"), passes},
		{"its owner reference was removed", born().remove(30, "o").change(35, "x", owners()), passes},
		{"its owner reference was removed before the owner was deleted", born().change(29, "x", owners()).remove(30, "o"), unexercised},
		{"it got another owner", born().remove(30, "o").change(35, "x", owners(gadget("p"))), passes},
		{"it got another owner, which went too", born().remove(30, "o").change(35, "x", owners(gadget("p"))).remove(40, "p"),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "outlived its owner Gadget p"}},
		{"it was changed, and its owner is still gone", born().remove(30, "o").change(80, "x", owners(owner)), fails},
		{"one of two owners lives", born().change(12, "x", owners(owner, gadget("p"))).remove(30, "o"), unexercised},
		{"both owners go", born().change(12, "x", owners(owner, gadget("p"))).remove(30, "o").remove(100, "p").remove(150, "x"), passes},
		{"the owner is being deleted, and waits", born().mark(30, "o", "foregroundDeletion"), unexercised},
		{"a second owner never existed", born().change(12, "x", owners(owner, gadget("never"))).remove(30, "o"), fails},
		{"the owner never existed", tell(name).put(11, configMap("x", owner)), unexercised},
		{"its owner may be a Lease, which the history leaves out",
			born().change(12, "x", owners(owner, history.Object{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: "l", UID: "uid-l"})).remove(30, "o"), unexercised},
		{"a fault is on until late", born().cut("b", "a", 20, 120).remove(30, "o").remove(179, "x"), passes},
		{"a fault was on, and the time after it is over", born().cut("b", "a", 20, 120).remove(30, "o").remove(181, "x"), fails},
		{"the run ends too early after a fault", born().cut("b", "a", 20, 150).remove(30, "o"),
			want{outcome: OutcomeInconclusive, reason: "too early for 1 object", fact: "the run ended too early: 1"}},
		{"the run ends too early for one of two", born().put(11, configMap("y", gadget("p"))).remove(30, "o").remove(31, "x").remove(150, "p"),
			want{outcome: OutcomePass, checked: 1, fact: "the run ended too early: 1"}},
		{"the machine was overloaded when it was due", born().remove(30, "o").slow(88, 95, "a", "b", "c"),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "overloaded"}},
		{"no owner goes", born(), unexercised},
	})
}

func TestTheBoundOfCollectionIsThatOfTheRun(t *testing.T) {
	s := tell("OrphansCollected").put(10, gadget("o")).put(11, configMap("x", gadget("o"))).remove(30, "o").remove(60, "x")
	for bound, want := range map[time.Duration]Outcome{0: OutcomePass, 20 * time.Second: OutcomeFail, 40 * time.Second: OutcomePass} {
		s.h.Run.Bounds.Collection = bound
		if got := verdictOf(t, s.h, "OrphansCollected").Outcome; got != want {
			t.Errorf("with a bound of %s: %s, want %s", bound, got, want)
		}
	}
}
