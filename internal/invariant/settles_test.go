package invariant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// workload is a workload in namespace n, of a kind in a group version.
func workload(apiVersion, kind string, replicas int64) history.Object {
	return history.Object{
		Key: "/registry/" + strings.ToLower(kind) + "s/n/w", APIVersion: apiVersion, Kind: kind, Namespace: "n", Name: "w", UID: "uid-w",
		Generation: 1, Replicas: &replicas,
	}
}

// product is an object that a workload controls.
func product(of history.Object, apiVersion, kind, name string) history.Object {
	o := configMap(name, of)
	o.Key, o.APIVersion, o.Kind, o.Owners[0].Controls = "/registry/"+strings.ToLower(kind)+"s/n/"+name, apiVersion, kind, true
	return o
}

// grown adds a Deployment that makes a ReplicaSet every two seconds if wrong is set, and otherwise
// makes one.
func (s *story) grown(wrong bool) *story {
	d := workload("apps/v1", "Deployment", 0)
	d.Replicas = nil
	s.collects(150, 200).put(130, d).put(130.1, product(d, "apps/v1", "ReplicaSet", "w-0"))
	for i := 1; wrong && i < 10; i++ {
		s.put(130+2*float64(i), product(d, "apps/v1", "ReplicaSet", fmt.Sprintf("w-%d", i)))
	}
	return s
}

func TestSettles(t *testing.T) {
	const name = "Settles"
	begun := func() *story { return tell(name).ask(190, "a", widgets, 200).collects(0, 200) }
	deployment := workload("apps/v1", "Deployment", 0)
	deployment.Replicas = nil
	sets := func(s *story, from, every float64, n int, after ...func(*story, float64, string)) *story {
		for i := range n {
			at, name := from+every*float64(i), fmt.Sprintf("w-%g-%d", from, i)
			s.put(at, product(deployment, "apps/v1", "ReplicaSet", name))
			for _, do := range after {
				do(s, at, name)
			}
		}
		return s
	}
	made := func() *story { return sets(begun().put(30, deployment), 30.1, 1, 1) }
	// pods adds Pods of a workload, each of which meets an end.
	pods := func(of history.Object, every float64, n int, end func(*story, float64, string)) *story {
		s := begun().put(30, of)
		for i := range n {
			at, name := 30+every*float64(i), fmt.Sprintf("p-%d", i)
			s.put(at, product(of, "v1", "Pod", name))
			if end != nil {
				end(s, at+every/2, name)
			}
		}
		return s
	}
	ends := func(s *story, at float64, name string) {
		s.change(at, name, func(o *history.Object) { o.Ended = true })
	}
	removed := func(s *story, at float64, name string) { s.remove(at, name) }
	by := func(controller string) func(*story, float64, string) {
		return func(s *story, at float64, name string) {
			s.request(at+0.5, "b", "system:serviceaccount:kube-system:"+controller, "delete",
				history.GVR{Group: "apps", Version: "v1", Resource: "replicasets"}, "n", name, 200).remove(at+0.51, name)
		}
	}
	changed := func(s *story, at float64) *story {
		return s.change(at, "w", func(o *history.Object) { o.Generation++ })
	}
	passes, fails := want{outcome: OutcomePass, checked: 1}, want{outcome: OutcomeFail, checked: 1, violations: 1}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	checkStories(t, name, []storyCase{
		{"a Deployment with one ReplicaSet", made(), passes},
		{"it makes one every two seconds", sets(begun().put(30, deployment), 30.1, 2, 20),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "Deployment n/w does not stop producing objects of kind ReplicaSet",
				sentence: "3, 5, 10, 15 objects of kind ReplicaSet after 5, 10, 20 and 30 s. The last of them was ReplicaSet n/w-30.1-19", fact: "made by Deployment n/w: 3, 5"}},
		{"it makes four too many", sets(made(), 50, 2, 4), fails},
		{"and three", sets(made(), 50, 2, 3), passes},
		{"and many at once, before the others can be watched", sets(made(), 31, 0.5, 15), passes},
		{"it changes each time", changed(changed(changed(sets(made(), 50, 30, 4), 49), 79), 109), want{outcome: OutcomePass, checked: 3}},
		{"its status changes", made().change(60, "w", func(*history.Object) {}).change(90, "w", func(*history.Object) {}), passes},
		{"it makes many after a change, and nothing changed since", sets(changed(made(), 80), 92, 2, 9), want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"somebody deletes them", sets(made(), 50, 2, 9, by("somebody")), passes},
		{"its controller deletes them", sets(made(), 50, 2, 9, by("deployment-controller")), fails},
		{"somebody deletes them all afterwards", sets(made(), 50, 2, 9).remove(80, "w-50-0", "w-50-1", "w-50-2", "w-50-3", "w-50-4", "w-50-5", "w-50-6"), fails},
		{"no log says who deletes them", sets(made(), 50, 2, 9, func(s *story, at float64, name string) { s.remove(at+0.5, name) }), passes},
		{"while a link is cut", sets(made(), 50, 2, 9).cut("b", "etcd", 45, 75), passes},
		{"until it is deleted", sets(made(), 42, 2, 4).mark(52, "w"), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"others make objects for it", begun().put(30, deployment).put(60, configMap("1", deployment), configMap("2", deployment), configMap("3", deployment), configMap("4", deployment)), unexercised},
		{"a ReplicaSet replaces Pods that fail", pods(workload("apps/v1", "ReplicaSet", 1), 4, 20, ends), passes},
		{"and Pods that are deleted", pods(workload("apps/v1", "ReplicaSet", 1), 4, 20, removed), passes},
		{"and makes more than it wants", pods(workload("apps/v1", "ReplicaSet", 5), 4, 20, nil), fails},
		{"it makes late what it wants", pods(workload("apps/v1", "ReplicaSet", 20), 4, 20, nil), passes},
		{"a StatefulSet makes one Pod after another", pods(workload("apps/v1", "StatefulSet", 20), 7, 20, nil), passes},
		{"a Job's Pods fail again and again", pods(workload("batch/v1", "Job", 2), 4, 30, ends), passes},
		{"a Job makes more than it wants", pods(workload("batch/v1", "Job", 2), 4, 30, nil), fails},
		{"a DaemonSet without nodes", pods(workload("apps/v1", "DaemonSet", 0), 4, 20, nil), fails},
		{"a CronJob makes Pods for ever", pods(workload("batch/v1", "CronJob", 0), 4, 30, nil), unexercised},
		{"another program's workload", pods(workload("example.com/v1", "Deployment", 0), 4, 30, nil), unexercised},
		{"of an older run, without generations", pods(history.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "n", Name: "w", UID: "uid-w"}, 4, 20, nil), unexercised},
		{"watched for too short a time", sets(begun().put(185, deployment), 186, 1, 1), want{outcome: OutcomeInconclusive, fact: "long enough after a change or a disturbance: 1", reason: "not exercised"}},
		{"no controller runs", made().idle(), want{outcome: OutcomeInconclusive, fact: "no controller at work: 1", reason: "not exercised"}},
		{"none", begun(), unexercised},
	})
}

// The evidence has the request that made the last object, with the server that carried it out.
func TestAWorkloadThatDoesNotSettleNamesTheServerOfItsController(t *testing.T) {
	s := tell("Settles").ask(190, "a", widgets, 200).grown(true)
	replicaSets := history.GVR{Group: "apps", Version: "v1", Resource: "replicasets"}
	s.request(147.9, "b", "system:serviceaccount:kube-system:deployment-controller", "create", replicaSets, "n", "", 201)
	s.request(147.95, "a", "jane", "create", replicaSets, "n", "", 201)
	e := verdictOf(t, s.h, "Settles").Evidence[0]
	if e.Asked != "b" || e.Signature.Mechanism != MechanismController || len(e.Operations) != 1 || len(e.Objects) != 3 || e.Objects[0].Kind != "Deployment" {
		t.Errorf("%+v", e)
	}
}
