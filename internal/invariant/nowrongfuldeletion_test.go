package invariant

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestNoWrongfulDeletion(t *testing.T) {
	const name = "NoWrongfulDeletion"
	owner := gadget("o")
	born := func() *story { return tell(name).put(10, owner).put(11, configMap("x", owner)) }
	byCollector := func(s *story) *story {
		return s.request(40, "b", collector, "delete", configMaps, "n", "x", 200).remove(40.01, "x")
	}
	// made also has a namespace n.
	made := func() *story { return tell(name).put(5, namespace("n")).put(10, owner).put(11, configMap("x", owner)) }
	definition := func(name string) history.Object {
		return history.Object{Key: "/registry/apiextensions.k8s.io/customresourcedefinitions/" + name, APIVersion: "apiextensions.k8s.io/v1",
			Kind: "CustomResourceDefinition", Name: name, UID: "uid-" + name}
	}
	custom := configMap("x", owner)
	custom.APIVersion, custom.Kind, custom.Key = "g.io/v1", "Own", "/registry/g.io/owns/n/x"
	defined := func() *story {
		return tell(name).put(5, definition("owns.g.io"), definition("others.g.io")).put(10, owner).put(11, custom)
	}
	// pod has a Pod of a ReplicaSet.
	pod := func() *story {
		set := history.Object{Key: "/registry/replicasets/n/rs", APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "n", Name: "rs", UID: "uid-rs"}
		p := configMap("p", set)
		p.Kind, p.Key = "Pod", "/registry/pods/n/p"
		return tell(name).put(10, set).put(11, p)
	}
	podFails := want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "Pod n/p was deleted, though its owner ReplicaSet n/rs exists"}
	agent := func(name string) func(*history.Request) {
		return func(q *history.Request) {
			q.Agent = "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/abc/" + name
		}
	}
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "ConfigMap n/x was deleted, though its owner Gadget o exists"}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	passes := want{outcome: OutcomePass, checked: 1}
	with := func(w want, sentence string) want { w.sentence = sentence; return w }
	changed := func(owners ...history.Owner) *story {
		return born().change(20, "x", func(o *history.Object) { o.Owners = owners })
	}
	checkStories(t, name, []storyCase{
		{"kept while its owner lives", born(), want{outcome: OutcomePass, checked: 1, fact: "kept whose owner exists: 1"}},
		{"deleted when its owner is gone", born().remove(30, "o").remove(31, "x"), want{outcome: OutcomePass, checked: 1, fact: "were gone or going: 1"}},
		{"deleted while its owner goes", born().mark(30, "o", "foregroundDeletion").remove(31, "x").remove(32, "o"), passes},
		{"deleted while its owner exists, and no log names the deleter", born().remove(40, "x"), with(fails, "No server's log says who asked for it.")},
		{"deleted by the garbage collector while its owner lives", byCollector(born()),
			with(fails, collector+" (kube-controller-manager/v1.37.1) asked for it through b at 40s: delete")},
		{"it only begins to be deleted", born().mark(40, "x", "some/finalizer"), fails},
		{"its owner goes later", born().remove(40, "x").remove(41, "o"), fails},
		{"one of two owners lives", tell(name).put(10, owner, gadget("p")).put(11, configMap("x", owner, gadget("p"))).remove(30, "o").remove(31, "x"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "its owner Gadget p exists"}},
		{"the garbage collector was told that the owner does not exist",
			byCollector(born().request(39, "b", collector, "get", gadgets, "", "o", 404)), with(fails, "Before that, b was asked at 39s: get apps/v2/gadgets")},
		{"others depend on the owner too", byCollector(born().put(12, configMap("y", owner))),
			want{outcome: OutcomeFail, checked: 2, violations: 1, sentence: "The graph: Gadget o → ConfigMap n/x; also → ConfigMap n/y"}},

		{"the load asked for it", born().ask(40, "b", configMaps, 200, on("delete", "x")).remove(40.01, "x"), unexercised},
		{"the load asked for it and got no answer", born().ask(40, "b", configMaps, 0, on("delete", "x"), failed(history.FailureTimeout)).remove(40.01, "x"), unexercised},
		{"the load asked for all of them", born().ask(40, "b", configMaps, 200, on("deletecollection", "")).remove(40.01, "x"), unexercised},
		{"the load asked for another one", born().ask(40, "b", configMaps, 200, on("delete", "y")).remove(40.01, "x"), fails},
		{"the load asked for one of another resource", born().ask(40, "b", widgets, 200, on("delete", "x")).remove(40.01, "x"), fails},
		{"the load's request failed", born().ask(40, "b", configMaps, 404, on("delete", "x")).remove(40.01, "x"), fails},
		{"the load asked in a dry run", born().ask(40, "b", configMaps, 200, on("delete", "x"), func(o *history.Operation) { o.Path += "?dryRun=All" }).remove(40.01, "x"), fails},
		{"the load asked later", born().ask(42, "b", configMaps, 200, on("delete", "x")).remove(40.01, "x"), fails},
		{"the load had deleted one of that name before", tell(name).ask(8, "b", configMaps, 200, on("delete", "x")).put(10, owner).put(11, configMap("x", owner)).remove(40, "x"), fails},
		{"the load only read it", born().ask(40, "b", configMaps, 200, on("get", "x")).remove(40.01, "x"), fails},

		{"a step of the run asked for it", born().request(40, "b", "", "delete", configMaps, "n", "x", 200, own).remove(40.01, "x"), unexercised},
		{"a step of the run asked for another one", born().request(40, "b", "", "delete", configMaps, "n", "y", 200, own).remove(40.01, "x"), fails},
		{"the request of a step failed", born().request(40, "b", "", "delete", configMaps, "n", "x", 409, own).remove(40.01, "x"), fails},
		{"a client that is not part of Kubernetes asked for it", born().request(40, "b", "jane", "delete", configMaps, "n", "x", 200).remove(40.01, "x"), unexercised},
		{"a controller that manages other objects asked for it", born().request(40, "b", replicas, "delete", configMaps, "n", "x", 200).remove(40.01, "x"), fails},
		{"a controller that deletes nothing asked for it",
			born().request(40, "b", "system:serviceaccount:kube-system:root-ca-cert-publisher", "delete", configMaps, "n", "x", 200).remove(40.01, "x"), fails},
		{"the controller that has made it asked for it", pod().request(40, "b", replicas, "delete", pods, "n", "p", 200).remove(40.01, "p"), unexercised},
		{"that controller begins its deletion", pod().request(40, "b", replicas, "delete", pods, "n", "p", 200).mark(40.01, "p"), unexercised},
		{"the request of that controller failed", pod().request(39, "b", replicas, "delete", pods, "n", "p", 409).remove(40.01, "p"), podFails},
		{"the controller of another kind of owner asked for it",
			pod().request(40, "b", "system:serviceaccount:kube-system:daemon-set-controller", "delete", pods, "n", "p", 200).remove(40.01, "p"), podFails},
		{"that controller shares the user of all controllers", pod().request(40, "b", "system:kube-controller-manager", "delete", pods, "n", "p", 200, agent("replicaset-controller")).
			remove(40.01, "p"), unexercised},
		{"no agent says which controller it was", pod().request(40, "b", "system:kube-controller-manager", "delete", pods, "n", "p", 200, agent("")).remove(40.01, "p"), podFails},
		{"its kubelet asked for it", pod().request(40, "b", "system:node:n1", "delete", pods, "n", "p", 200).remove(40.01, "p"), unexercised},
		{"a kubelet asked for something else", born().request(40, "b", "system:node:n1", "delete", configMaps, "n", "x", 200).remove(40.01, "x"), fails},
		{"the scheduler made room", pod().request(40, "b", "system:kube-scheduler", "delete", pods, "n", "p", 200).remove(40.01, "p"), unexercised},
		{"the request of a controller failed", byCollector(born().request(39, "b", replicas, "delete", configMaps, "n", "x", 409)), fails},
		{"a controller only changed it", byCollector(born().request(39, "b", replicas, "patch", configMaps, "n", "x", 200)), fails},
		{"the garbage collector shares the user of all controllers",
			born().request(40, "b", "system:kube-controller-manager", "delete", configMaps, "n", "x", 200, func(q *history.Request) {
				q.Agent = "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/abc/generic-garbage-collector"
			}).remove(40.01, "x"), fails},

		{"its namespace goes", made().mark(39, "n").request(40, "b", cleaner, "deletecollection", configMaps, "n", "", 200).remove(40.01, "x"), unexercised},
		{"its namespace does not go", made().request(40, "b", cleaner, "deletecollection", configMaps, "n", "", 200).remove(40.01, "x"), fails},
		{"another namespace goes", made().put(6, namespace("m")).mark(39, "m").remove(40.01, "x"), fails},
		{"a namespace of that name was deleted before", tell(name).put(1, namespace("n")).mark(2, "n").remove(3, "n").
			put(5, func() history.Object { again := namespace("n"); again.UID = "uid-again"; return again }()).put(10, owner).put(11, configMap("x", owner)).remove(40, "x"), fails},
		{"its namespace goes later", made().remove(40.01, "x").mark(41, "n"), fails},
		{"its definition goes", defined().mark(39, "owns.g.io").remove(40, "x"), unexercised},
		{"another definition goes", defined().mark(39, "others.g.io").remove(40, "x"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "Own n/x was deleted"}},

		{"the reference names another kind", changed(history.Owner{APIVersion: "apps/v2", Kind: "Other", Name: "o", UID: "uid-o"}).remove(40, "x"), passes},
		{"the reference names another name", changed(history.Owner{APIVersion: "apps/v2", Kind: "Gadget", Name: "p", UID: "uid-o"}).remove(40, "x"), passes},
		{"the reference names another version", changed(history.Owner{APIVersion: "apps/v1", Kind: "Gadget", Name: "o", UID: "uid-o"}).remove(40, "x"), fails},
		{"the owner is in another namespace", tell(name).put(10, within("m", configMap("o"))).put(11, configMap("x", configMap("o"))).remove(40, "x"), unexercised},
		{"it had lost its owner before", changed().remove(40, "x"), passes},
		{"an owner may be a Lease, which the history leaves out", tell(name).put(10, owner).
			put(11, configMap("x", owner, history.Object{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: "l", UID: "uid-l"})).remove(30, "o").remove(31, "x"),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"it was going when the run began", tell(name).put(10, owner, func() history.Object { o := configMap("x", owner); o.Deleting = true; return o }()).remove(40, "x"), unexercised},
		{"nothing has an owner", tell(name).put(10, owner, configMap("x")).remove(40, "x"), unexercised},
		{"no controllers", tell(name).ask(20, "b", gadgets, 200), unexercised},
	})
}

// A wrongful deletion has the signature of the answer that misled the deleter, so that a finding
// can explain the deletion.
func TestAWrongfulDeletionIsSignedByTheAnswerThatMisled(t *testing.T) {
	owner := gadget("o")
	told := func(options ...func(*story)) Evidence {
		t.Helper()
		s := tell("NoWrongfulDeletion").runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").put(10, owner).put(11, configMap("x", owner))
		for _, o := range options {
			o(s)
		}
		s.request(40, "b", collector, "delete", configMaps, "n", "x", 200).remove(40.01, "x")
		return verdictOf(t, s.h, "NoWrongfulDeletion").Evidence[0]
	}
	denied := func(status int, user, name string, at float64, options ...func(*history.Request)) func(*story) {
		return func(s *story) { s.request(at, "b", user, "get", gadgets, "", name, status, options...) }
	}
	const wrong = "an object was deleted whose owner exists"
	misled := Signature{
		Invariant: "NoWrongfulDeletion", Mechanism: MechanismResource, Roles: RoleOlder, Answer: "404 resource", Way: WayAnswered, Reach: ReachAll, Wrong: wrong,
	}
	unknown := Signature{Invariant: "NoWrongfulDeletion", Mechanism: MechanismController, Roles: RoleOlder, Reach: ReachAll, Wrong: wrong}
	for name, c := range map[string]struct {
		evidence Evidence
		want     Signature
		requests int
	}{
		"denied to the garbage collector":          {told(denied(404, collector, "o", 39)), misled, 2},
		"denied as a whole resource":               {told(denied(404, collector, "", 39)), misled, 2},
		"denied to another client":                 {told(denied(404, replicas, "o", 39)), unknown, 1},
		"another one was denied":                   {told(denied(404, collector, "p", 39)), unknown, 1},
		"denied before the owner existed":          {told(denied(404, collector, "o", 8)), unknown, 1},
		"denied after the deletion":                {told(denied(404, collector, "o", 45)), unknown, 1},
		"it was an error":                          {told(denied(503, collector, "o", 39)), unknown, 1},
		"denied by an access log without an agent": {told(denied(404, collector, "o", 39, func(q *history.Request) { q.Agent = "" })), misled, 2},
		"its status was denied":                    {told(denied(404, collector, "o", 39, func(q *history.Request) { q.Subresource = "status" })), unknown, 1},
	} {
		if got := c.evidence.Signature; got != c.want {
			t.Errorf("%s: signature %+v, want %+v", name, got, c.want)
		}
		if len(c.evidence.Operations) != c.requests || len(c.evidence.Objects) != 2 || c.evidence.Objects[0].Name != "o" || c.evidence.Objects[1].Name != "x" {
			t.Errorf("%s: evidence %+v", name, c.evidence)
		}
		if strings.Contains(c.want.String(), "gadgets") {
			t.Errorf("the signature names a resource: %s", c.want)
		}
	}
}
