package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func inGroup(group string, versions ...string) (out []history.Resource) {
	for _, v := range versions {
		out = append(out, line(history.GVR{Group: group, Version: v, Resource: "things"}))
	}
	return out
}

func TestVersionOrder(t *testing.T) {
	const name = "VersionOrder"
	var (
		right    = doc("right", inGroup("flows", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "experiment")...)
		betaUp   = doc("beta-up", inGroup("flows", "v1beta1", "v1")...)
		olderUp  = doc("older-up", append(inGroup("batch", "v1"), inGroup("flows", "v1", "v2")...)...)
		ofItsOwn = doc("of-its-own", inGroup("flows", "v1beta1", "v1")...)
	)
	checkStories(t, name, []storyCase{
		{"by priority", tell(name).discover(20, "a", "/apis", right).discover(21, "b", "/apis", right),
			want{outcome: OutcomePass, checked: 2, fact: "groups of several versions in one document: 1"}},
		{"a beta version before a stable one", tell(name).discover(20, "a", "/apis", right).discover(21, "b", "/apis", betaUp),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "out of order", sentence: "b was asked at 21s"}},
		{"an older version before a newer one", tell(name).discover(20, "a", "/apis", olderUp),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "flows (v1, v2)"}},
		{"while the cluster changes, not all servers may know a version", tell(name).discover(33, "a", "/apis", betaUp).step("restart c", 32, 34).discover(20, "a", "/apis", right),
			want{outcome: OutcomePass, checked: 1}},
		{"the order that a server itself has", tell(name).served("a", 10, ofItsOwn).discover(20, "b", "/apis", betaUp),
			want{outcome: OutcomePass, checked: 1}},
		{"but only of that group", tell(name).served("a", 10, doc("other", inGroup("batch", "v1beta1", "v1")...)).discover(20, "b", "/apis", betaUp),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"no group of several versions", tell(name).discover(20, "a", "/apis", doc("plain", inGroup("flows", "v1")...)),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "no merged document listed a group of several versions"}},
		{"the core group is in another document", tell(name).discover(20, "a", "/api", coreDoc),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a server that is not ready", tell(name).discover(0.5, "a", "/apis", betaUp),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
	})
}
