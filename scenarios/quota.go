package scenarios

import (
	"github.com/skewproof/skewproof/internal/scenario"
)

var quota = scenario.Scenario{
	Name: "quota",
	Happens: "Only the first server runs TO. The controllers are clients of the second. A ResourceQuota counts objects of a kind that only " +
		"the first serves, and of one that all serve. Some of the objects are deleted, and their dependents with them.",
	Holds:   "The status of the quota says how many objects there are, of either kind, before and after the deletion.",
	Source:  "KEP-4020, motivation and goals: controllers work by what discovery lists; Kubernetes' documentation of resource quotas",
	About:   []string{"QuotaFollows", "OrphansCollected", "NoWrongfulDeletion"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"QuotaFollows"}},
	Plan:    controlled(counting.alone),
}

// counting lets controllers count objects. Some of these objects are deleted.
var counting = task{
	prepare: func(plan *scenario.Plan, p scenario.Parameters) {
		createForControllers(countersLag)(plan, p)
		plan.CreateQuota(collected)
		plan.OutlastCollection()
	},
	act: func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.DeleteOwners(collected, scenario.Background)
	},
	finish: func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Collect()
		plan.OutlastCollection()
	},
}
