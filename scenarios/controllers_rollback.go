package scenarios

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var controllersRollback = scenario.Scenario{
	Name: "controllers-rollback",
	Happens: "The servers are upgraded one by one, and then downgraded again, the last one first. Owners of kinds that only TO serves exist " +
		"all the time: their kinds appear, vanish with the last server of TO, and come back when the first server is upgraded again. " +
		"The controllers are clients of the last server. They are restarted while no server serves these kinds, and when they are back.",
	Holds: "The garbage collector deletes no dependent of an owner that is in etcd, not even while no server serves its kind. When the " +
		"kinds are back and the owners are deleted, their dependents go, and nothing is left of a namespace that is deleted.",
	Source:  "KEP-4020, upgrade / downgrade strategy; motivation: garbage collection that is misled by a 404",
	About:   []string{"NoWrongfulDeletion", "OrphansCollected", "NothingLeftBehind", "DeletionEnds"},
	Labels:  []string{"slow"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"OrphansCollected", "NothingLeftBehind"}},
	Plan: planned(noneTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		servers := plan.Names()
		first, last := servers[0], servers[len(servers)-1]
		plan.StartControllers(p.From, last)
		plan.Settle(2 * time.Second)
		plan.Replace(first, p.To)
		plan.Settle(2 * time.Second)
		work := giveWork(plan, "rolled-back", 1)
		for _, server := range servers[1:] {
			plan.Replace(server, p.To)
			plan.Settle(2 * time.Second)
		}
		for _, server := range slices.Backward(servers) {
			plan.Replace(server, p.From)
			plan.Settle(2 * time.Second)
		}
		plan.StartControllers(p.From, last)
		plan.Soak(collectorLooks)
		plan.Replace(first, p.To)
		plan.Settle(2 * time.Second)
		plan.StartControllers(p.From, last)
		plan.Soak(collectorLooks)
		work.delete(plan)
		plan.Collect()
	}),
}
