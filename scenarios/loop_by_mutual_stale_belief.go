package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var loopByMutualStaleBelief = scenario.Scenario{
	Name: "loop-by-mutual-stale-belief",
	Happens: "A custom resource is served by every server, and each has learnt so of the others. It is deleted while two cannot reach each other, " +
		"and then the network is whole again: nobody serves it, and each may believe that the other does, for minutes. " +
		"Among the clients are some that forge the header by which servers tell each other that a request has been passed on, whatever it says.",
	Holds: "No request goes from one to the other and back, or on to a third; what nobody serves is soon 404 again, " +
		"also when everything that servers keep for some minutes has been dropped.",
	Source: "KEP-4020, risks and mitigations 4: a rerouted request is never rerouted again; " +
		"k8s.io/apiserver, pkg/util/peerproxy: what was a custom resource is kept out of peers' documents for five minutes more",
	About:      []string{"TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Safety,
	Labels:     []string{"slow"},
	Control:    scenario.Control{Defect: "denial-believed", Invariants: []string{"NoLoop"}},
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Traffic = scenario.HostileTraffic
		servers := plan.Names()
		gadgets := &scenario.Definition{Group: "loop.skewproof.dev", Resource: "gadgets", Versions: []string{"v1"}}
		plan.Settle(2 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Define, Definition: gadgets})
		plan.Restart(servers[p.Servers-1]) // so that everybody fetches what everybody serves
		plan.Settle(5 * time.Second)
		heal := plan.Suffer(cut("a", "b"), cut("b", "a"))
		plan.Soak(time.Second)
		plan.Add(scenario.Step{Action: scenario.Undefine, Definition: gadgets})
		plan.Settle(5 * time.Second)
		heal()
		plan.Settle(10 * time.Second)
		plan.Soak(6 * time.Minute)
		plan.Pressure = history.Pressure{Operations: 10000, Unserved: 500}
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
		return *plan
	},
}
