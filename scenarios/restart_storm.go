package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var restartStorm = Scenario{
	Name: "restart-storm",
	Happens: "The first server alone runs TO. All servers are restarted one right after the other; then each together with its neighbour, " +
		"so that two starts overlap; then each is killed and started again at once.",
	Holds:            "Who is up answers right; nobody takes what it has not yet learnt for absent; nobody dies of it; all is well soon after the last start.",
	Source:           "KEP-4020, goals; kubernetes/kubernetes: a peer's discovery is fetched only when its lease changes",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges"}, // in a storm it is too rarely certain that nobody serves something
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           Upgrades,
	Labels:           []string{"slow"},
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		servers := plan.names()
		plan.settle(4 * time.Second)
		for _, server := range servers {
			plan.restart(server)
		}
		plan.settle(2 * time.Second)
		for i, server := range servers {
			neighbour := servers[(i+1)%len(servers)]
			plan.stop(server)
			plan.stop(neighbour)
			plan.start(neighbour)
			plan.start(server)
		}
		plan.settle(2 * time.Second)
		for _, server := range servers {
			plan.kill(server)
			plan.soak(time.Second)
			plan.start(server)
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 300, Unserved: 100}
		return *plan
	},
}
