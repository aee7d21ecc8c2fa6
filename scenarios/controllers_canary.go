package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var controllersCanary = scenario.Scenario{
	Name: "controllers-canary",
	Happens: "One server is upgraded and runs for longer than leases last and first retries take. Meanwhile the controllers move: they are " +
		"clients of an older server, then of the newer one, then of the older one again, as when another host leads. Owners and " +
		"namespaces are deleted while they are clients of each.",
	Holds: "Wherever the controllers are, they delete no dependent of an owner that lives, and complete what the controllers before them " +
		"have begun.",
	Source:  "KEP-4020, motivation: a cluster may run mixed versions for as long as an upgrade is being watched",
	About:   []string{"NoWrongfulDeletion", "OrphansCollected", "NothingLeftBehind", "DeletionEnds"},
	Labels:  []string{"slow"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"OrphansCollected", "NothingLeftBehind"}},
	Plan: planned(noneTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartControllers(p.From, "b")
		plan.Settle(2 * time.Second)
		plan.Replace("a", p.To)
		plan.Settle(35 * time.Second)
		whileOld, whileNew, afterwards := giveWork(plan, "while-old", 1), giveWork(plan, "while-new", 1), giveWork(plan, "afterwards", 1)
		plan.Soak(5 * time.Second)
		whileOld.delete(plan)
		plan.Collect()
		plan.StartControllers(p.From, "a")
		plan.Soak(15 * time.Second)
		whileNew.delete(plan)
		plan.Collect()
		plan.StartControllers(p.From, "b")
		plan.Soak(15 * time.Second)
		afterwards.delete(plan)
		plan.Collect()
	}),
}
