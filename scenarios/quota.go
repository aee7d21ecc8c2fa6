package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var quota = scenario.Scenario{
	Name: "quota",
	Happens: "Only the first server runs TO. The controllers are clients of the second. A ResourceQuota counts objects of a kind that only " +
		"the first serves, and of one that all serve. Some of the objects are deleted, and their dependents with them.",
	Holds:            "The status of the quota says how many objects there are, of either kind, before and after the deletion.",
	Source:           "KEP-4020, motivation and goals: controllers work by what discovery lists; Kubernetes' documentation of resource quotas",
	About:            []string{"QuotaFollows", "OrphansCollected", "NoWrongfulDeletion"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Controllers,
	Limits:           withControllers,
	Control:          scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"QuotaFollows"}},
	Plan: controlled(func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartControllers(p.From, "b")
		plan.Soak(10 * time.Second)
		plan.CreateObjects(collected)
		plan.Soak(countersLag)
		plan.CreateQuota(collected)
		plan.OutlastCollection()
		plan.DeleteOwners(collected, scenario.Background)
		plan.Collect()
		plan.OutlastCollection()
	}),
}
