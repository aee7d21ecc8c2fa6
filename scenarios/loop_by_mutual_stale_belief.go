package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var loopByMutualStaleBelief = scenario.Scenario{
	Name: "loop-by-mutual-stale-belief",
	Happens: "Every server serves a custom resource and knows that the others do. It is deleted while two servers cannot reach each other, " +
		"and then the network is healed: no server serves the resource, and each of the two may believe for minutes that the other " +
		"does.",
	Holds: "No request goes from one server to another and back, or on to a third. Requests for the deleted resource are soon " +
		"answered 404 again, and stay so after everything has expired that servers remember for some minutes.",
	Source: "KEP-4020, risks and mitigations 4: a rerouted request is never rerouted again; k8s.io/apiserver, pkg/util/peerproxy: what " +
		"was a custom resource is kept out of peers' documents for five minutes more",
	About:   []string{"TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	Labels:  []string{"slow"},
	Control: scenario.Control{Defect: "passed-back", Invariants: []string{"NoLoop"}},
	Plan: planned(firstTo, pressure{Operations: 10000, Unserved: 500}, func(plan *scenario.Plan, p scenario.Parameters) {
		servers := plan.Names()
		gadgets := &scenario.Definition{Group: "loop.skewproof.dev", Resource: "gadgets", Versions: []string{"v1"}}
		plan.Settle(2 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Define, Definition: gadgets})
		plan.Restart(servers[len(servers)-1]) // so that all servers fetch each other's documents
		plan.Settle(5 * time.Second)
		heal := plan.Suffer(cut("a", "b"), cut("b", "a"))
		plan.Soak(time.Second)
		plan.Add(scenario.Step{Action: scenario.Undefine, Definition: gadgets})
		plan.Settle(5 * time.Second)
		heal()
		plan.Settle(10 * time.Second)
		plan.Soak(6 * time.Minute)
		if p.Mixed() {
			plan.Pressure.Skewed, plan.Pressure.PassedOn = 500, 2000
		}
	}),
}
