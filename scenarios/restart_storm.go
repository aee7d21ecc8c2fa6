package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var restartStorm = scenario.Scenario{
	Name: "restart-storm",
	Happens: "Only the first server runs TO. All servers are restarted one right after the other; then each together with its neighbour, " +
		"so that two starts overlap; then each is killed and started again at once.",
	Holds: "A server that is up answers correctly, does not treat what it has not learnt yet as absent, and does not crash. Soon after " +
		"the last start everything is right.",
	Source: "KEP-4020, goals; kubernetes/kubernetes: a peer's discovery is fetched only when its lease changes",
	// Not TrueNotFound: it is rarely certain that no server serves a resource.
	About:      []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"slow"},
	Control:    mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		servers := plan.Names()
		plan.Settle(4 * time.Second)
		for _, server := range servers {
			plan.Restart(server)
		}
		plan.Settle(2 * time.Second)
		for i, server := range servers {
			neighbour := servers[(i+1)%len(servers)]
			plan.Stop(server)
			plan.Stop(neighbour)
			plan.Start(neighbour)
			plan.Start(server)
		}
		plan.Settle(2 * time.Second)
		for _, server := range servers {
			plan.Kill(server)
			plan.Soak(time.Second)
			plan.Start(server)
		}
		plan.Converge()
	}),
}
