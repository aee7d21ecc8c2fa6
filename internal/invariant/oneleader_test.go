package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// lease is the Lease of kube-controller-managers, held by the client of a server. "" means that it
// has no holder.
func lease(server string) history.Object {
	o := history.Object{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "kube-system", Name: "kube-controller-manager", UID: "uid-lease"}
	if server != "" {
		o.Holder = "kcm-" + server + "_1234"
	}
	return o
}

// renewed makes the client of a server hold the Lease from one time to another, and renew it every
// two seconds.
func (s *story) renewed(server string, from, to float64) *story {
	for at := from; at <= to; at += 2 {
		s.put(at, lease(server))
	}
	return s
}

// led has two candidates. The second takes the Lease over, too early if wrong is set.
func (s *story) led(wrong bool) *story {
	if wrong {
		return s.renewed("b", 10, 50).renewed("c", 55, 199)
	}
	return s.renewed("b", 10, 50).renewed("c", 66, 199)
}

func TestOneLeader(t *testing.T) {
	const name = "OneLeader"
	maps := history.GVR{Version: "v1", Resource: "configmaps"}
	collector := "system:serviceaccount:kube-system:generic-garbage-collector"
	rerouted := func(q *history.Request) { q.Rerouted = true }
	asked := func() *story { return tell(name).ask(170, "a", widgets, 200) }
	taken := func() *story { return asked().renewed("b", 10, 50).renewed("c", 66, 180) }
	fails := func(cause string) want { return want{outcome: OutcomeFail, checked: -1, violations: 1, cause: cause} }
	checkStories(t, name, []storyCase{
		{"taken over when the lease is over", taken(), want{outcome: OutcomePass, checked: -1, fact: "changes of the leader: 1"}},
		{"taken over when the holder must have given up", asked().renewed("b", 10, 50).renewed("c", 60, 180), want{outcome: OutcomePass, checked: -1}},
		{"taken over before", asked().renewed("b", 10, 50).renewed("c", 59, 180),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "taken over too early", sentence: "kcm-c_1234 took the Lease over at 59s (revision 121 of etcd), 9s after kcm-b_1234 had renewed it"}},
		{"released, and taken at once", asked().renewed("b", 10, 50).put(51, lease("")).renewed("c", 52, 120).renewed("b", 135, 180), want{outcome: OutcomePass, checked: -1}},
		{"no holder for too long", asked().renewed("b", 10, 50).renewed("c", 80.1, 180), fails("nobody renewed the Lease")},
		{"just in time", asked().renewed("b", 10, 50).renewed("c", 80, 180), want{outcome: OutcomePass, checked: -1, fact: "longest time without a renewal: 30s"}},
		{"no holder at the end", taken().ask(215, "a", widgets, 200), fails("nobody renewed the Lease")},
		{"nobody took over", asked().renewed("b", 10, 180), want{outcome: OutcomeInconclusive, checked: -1, reason: "took over from another one"}},
		{"the leader writes", taken().request(40, "b", collector, "delete", maps, "n", "x", 200).request(70, "c", collector, "delete", maps, "n", "y", 200), want{outcome: OutcomePass, checked: -1}},
		{"the former leader writes", taken().request(70, "b", collector, "delete", maps, "n", "x", 200),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "controllers that do not lead wrote", sentence: "while kcm-c_1234 held the Lease since 1m6s"}},
		{"the next leader writes too early", taken().request(49, "c", collector, "patch", maps, "n", "x", 200), fails("controllers that do not lead wrote")},
		{"a write that was on its way", taken().request(66.5, "b", collector, "delete", maps, "n", "x", 200), want{outcome: OutcomePass, checked: -1}},
		{"the former leader is refused", taken().request(70, "b", collector, "delete", maps, "n", "x", 503), want{outcome: OutcomePass, checked: -1}},
		{"it reads", taken().request(70, "b", collector, "get", maps, "n", "x", 404), want{outcome: OutcomePass, checked: -1}},
		{"a peer's request that was passed on", taken().request(70, "b", collector, "delete", maps, "n", "x", 200, rerouted), want{outcome: OutcomePass, checked: -1}},
		{"another user", taken().request(70, "b", "alice", "delete", maps, "n", "x", 200).request(70, "b", collector, "delete", maps, "n", "y", 200, own), want{outcome: OutcomePass, checked: -1}},
		{"it sends a review", taken().request(70, "b", "system:kube-controller-manager", "create", history.GVR{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}, "", "", 201),
			want{outcome: OutcomePass, checked: -1}},
		{"another cluster's leaders", tell(name).put(10, history.Object{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "kube-system", Name: "kube-controller-manager", UID: "u", Holder: "node-1_1"}).
			ask(190, "a", widgets, 200), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"no leader election", tell(name).ask(190, "a", widgets, 200), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
	})
}

func TestTheServerOfAHolder(t *testing.T) {
	for identity, want := range map[string]string{"kcm-b_1": "b", "kcm-b-2_x_y": "b-2", "kcm-b": "b", "node_1": "", "": "", "controllers_kcm-b": ""} {
		if got := candidateOf(identity); got != want {
			t.Errorf("%q: %q, want %q", identity, got, want)
		}
	}
}
