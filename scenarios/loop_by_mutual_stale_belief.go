package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var loopByMutualStaleBelief = Scenario{
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
	Family:     Safety,
	Labels:     []string{"slow"},
	Control:    Control{Defect: "denial-believed", Invariants: []string{"NoLoop"}},
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.Traffic = HostileTraffic
		servers := plan.names()
		gadgets := &Definition{Group: "loop.skewproof.dev", Resource: "gadgets", Versions: []string{"v1"}}
		plan.settle(2 * time.Second)
		plan.add(Step{Action: Define, Definition: gadgets})
		plan.restart(servers[p.Servers-1]) // so that everybody fetches what everybody serves
		plan.settle(5 * time.Second)
		heal := plan.suffer(cut("a", "b"), cut("b", "a"))
		plan.soak(time.Second)
		plan.add(Step{Action: Undefine, Definition: gadgets})
		plan.settle(5 * time.Second)
		heal()
		plan.settle(10 * time.Second)
		plan.soak(6 * time.Minute)
		plan.Pressure = history.Pressure{Operations: 10000, Unserved: 500}
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
		return *plan
	},
}
