package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestNothingLeftBehind(t *testing.T) {
	const name = "NothingLeftBehind"
	secret := configMap("y")
	secret.Kind, secret.Key = "Secret", "/registry/secrets/n/y"
	full := func() *story { return tell(name).put(10, namespace("n")).put(11, configMap("x"), secret) }
	again := namespace("n")
	again.UID = "uid-again"
	guarded := func(finalizers []string) history.Object {
		o := configMap("z")
		if o.Finalizers = finalizers; finalizers == nil {
			o.Finalizers = []string{"some/finalizer"}
		}
		return o
	}
	// held has a namespace that is deleted, with an object in it that has finalizers.
	held := func(finalizers []string) *story {
		return tell(name).put(10, namespace("n")).put(11, guarded(finalizers)).mark(20, "n").mark(20.5, "z")
	}
	passesHeld := want{outcome: OutcomePass, checked: 1}
	early := want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "ConfigMap n/z went before its finalizers were removed"}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	checkStories(t, name, []storyCase{
		{"empty when it goes", full().mark(20, "n").remove(21, "x", "y").remove(22, "n"), want{outcome: OutcomePass, checked: 2, fact: "namespaces that were deleted: 1"}},
		{"made while it goes, and gone before it", full().mark(20, "n").put(20.5, configMap("z")).remove(21, "x", "y", "z").remove(22, "n"),
			want{outcome: OutcomePass, checked: 3}},
		{"one stays", full().mark(20, "n").remove(21, "x").remove(22, "n"),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "Secret n/y stayed when its namespace was gone", sentence: "Namespace n was gone at 22s (revision 105 of etcd), but Secret n/y"}},
		{"one goes after it", full().mark(20, "n").remove(21, "x").remove(22, "n").remove(23, "y"),
			want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"one was made while it went", full().mark(20, "n").remove(21, "x", "y").put(21.5, configMap("z")).remove(22, "n"),
			want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "ConfigMap n/z"}},
		{"one that was going", full().mark(20, "n").remove(21, "x").mark(21, "y", "kubernetes").remove(22, "n"),
			want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"the namespace controller removed the namespace's finalizer", full().mark(20, "n").remove(21, "x").request(21.9, "b", cleaner, "update", history.GVR{}, "", "n", 200, finalize).remove(22, "n"),
			want{outcome: OutcomeFail, checked: 2, violations: 1, sentence: cleaner + " (kube-controller-manager/v1.37.1) had found the namespace empty, and let it go through b."}},
		{"the namespace controller got 404 for the resource",
			full().mark(20, "n").remove(21, "x").request(21, "b", cleaner, "list", history.GVR{Version: "v1", Resource: "secrets"}, "n", "", 404).
				request(21.9, "b", cleaner, "update", history.GVR{}, "", "n", 200, finalize).remove(22, "n"),
			want{outcome: OutcomeFail, checked: 2, violations: 1, sentence: "Before that, b was asked at 21s: list v1/secrets"}},
		{"it is back when the namespace is made again", full().mark(20, "n").remove(21, "x").remove(22, "n").put(50, again),
			want{outcome: OutcomeFail, checked: 2, violations: 1, sentence: "When a namespace n was made again at 50s, the object was in it."}},
		{"the namespace that is made again is deleted as well, with what was left", full().mark(20, "n").remove(21, "x").remove(22, "n").put(50, again).
			change(60, "n", func(o *history.Object) { o.Deleting = true }).remove(61, "n"),
			want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"in a namespace that was made again", full().mark(20, "n").remove(21, "x", "y").remove(22, "n").put(50, again).put(51, configMap("z")),
			want{outcome: OutcomePass, checked: 2}},
		{"in another namespace", full().put(12, within("m", configMap("z"))).mark(20, "n").remove(21, "x", "y").remove(22, "n"),
			want{outcome: OutcomePass, checked: 2}},
		{"without a namespace", full().put(12, gadget("z")).mark(20, "n").remove(21, "x", "y").remove(22, "n"),
			want{outcome: OutcomePass, checked: 2}},
		{"gone before it was deleted", full().remove(15, "x", "y").mark(20, "n").remove(22, "n"), unexercised},
		{"released, and gone", held(nil).request(22, "b", "", "patch", configMaps, "n", "z", 200, own).remove(22, "z"), passesHeld},
		{"released by another user", held(nil).request(22, "b", "jane", "update", configMaps, "n", "z", 200).remove(22, "z"), passesHeld},
		{"released by a request that got no answer", held(nil).request(22, "b", "jane", "update", configMaps, "n", "z", 0).remove(22, "z"), passesHeld},
		{"released by the load", held(nil).request(21, "b", cleaner, "delete", configMaps, "n", "y", 200).ask(22, "b", configMaps, 200, on("patch", "z")).remove(22, "z"), passesHeld},
		{"gone with its finalizers", held(nil).request(22, "b", cleaner, "delete", configMaps, "n", "z", 200).remove(22, "z"), early},
		{"gone with its finalizers, and no log names the writer", held(nil).request(21, "b", cleaner, "delete", configMaps, "n", "y", 200).remove(22, "z"), early},
		{"gone while its namespace stays", held(nil).request(22, "b", cleaner, "delete", configMaps, "n", "z", 200).remove(22, "z"), early},
		{"a collector wrote it", held(nil).request(22, "b", cleaner, "update", configMaps, "n", "z", 200).remove(22, "z"), early},
		{"the garbage collector removes its own finalizer", held([]string{"foregroundDeletion"}).request(22, "b", collector, "patch", configMaps, "n", "z", 200).remove(22, "z"), passesHeld},
		{"its request to remove the finalizer fails", held([]string{"foregroundDeletion"}).request(22, "b", collector, "patch", configMaps, "n", "z", 409).remove(22, "z"), early},
		{"another object was released", held(nil).request(22, "b", "jane", "update", configMaps, "n", "y", 200).remove(22, "z"), early},
		{"its status was written", held(nil).request(22, "b", "jane", "update", configMaps, "n", "z", 200, func(q *history.Request) { q.Subresource = "status" }).remove(22, "z"), early},
		{"it was written in a dry run", held(nil).request(22, "b", "jane", "update", configMaps, "n", "z", 200, func(q *history.Request) { q.Path += "?dryRun=All" }).remove(22, "z"), early},
		{"it was written before", held(nil).request(12, "b", "jane", "update", configMaps, "n", "z", 200).remove(22, "z"), early},
		{"no server's log exists", held(nil).remove(22, "z"), want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},
		{"its namespace does not go", tell(name).put(10, namespace("n")).put(11, guarded(nil)).request(22, "b", cleaner, "delete", configMaps, "n", "z", 200).remove(22, "z"), unexercised},
		{"it only goes", full().mark(20, "n"), unexercised},
		{"nothing was in it", tell(name).put(10, namespace("n")).mark(20, "n").remove(21, "n"), unexercised},
	})
}

// The namespace controller deletes the resources that discovery lists. If its server does not list
// a resource, the controller sends no request for it and gets no wrong answer.
func TestWhatWasLeftBehindUnasked(t *testing.T) {
	left := gadget("x")
	left.Namespace, left.Key = "n", "/registry/gadgets/n/x"
	s := tell("NothingLeftBehind").runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").put(10, namespace("n")).put(11, left).mark(20, "n").
		request(21, "b", cleaner, "update", history.GVR{}, "", "n", 200, finalize).remove(21.01, "n")
	want := Signature{
		Invariant: "NothingLeftBehind", Mechanism: MechanismController, Roles: RoleOlder, Reach: ReachAll, Since: SinceRecent,
		Wrong: "an object stayed when its namespace was gone",
	}
	e := verdictOf(t, s.h, "NothingLeftBehind").Evidence[0]
	if e.Signature != want || e.Asked != "b" || len(e.Operations) != 1 || e.GVR != gadgets {
		t.Errorf("%+v\n%+v", e.Signature, e)
	}
}
