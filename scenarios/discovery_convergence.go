package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var discoveryConvergence = Scenario{
	Name: "discovery-convergence",
	Happens: "What is served changes again and again: a custom resource is defined and deleted, a server is upgraded, another stops and comes back, a " +
		"third is restarted. After each change the servers are left alone for a while.",
	Holds:      "Within seconds of each change all servers describe it alike; the report says after how many.",
	Source:     "KEP-4020, service level objectives: what is known of peers is stale for seconds in the normal case",
	About:      []string{"DiscoveryDeterministic", "DiscoveryComplete", "NoFalseNotFound", "Converges"},
	MinServers: 3,
	Family:     Discovery,
	Labels:     []string{"conformance"},
	Control:    mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(func(int) string { return p.From })
		plan.Traffic = DiscoveryTraffic
		plan.settle(2 * time.Second)
		for _, change := range []func(){
			func() { plan.define(widgets("v1")) },
			func() { plan.replace("a", p.To) },
			func() { plan.add(Step{Action: Stop, Server: "b"}) },
			func() { plan.undefine(widgets("v1")) },
			func() { plan.add(Step{Action: Start, Server: "b"}) },
			func() { plan.restart("c") },
		} {
			change()
			plan.settle(4 * time.Second)
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 3000}
		return *plan
	},
}
