package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// gracePeriod is how long upstream remembers a group version of a custom resource or aggregated API after it is gone, so as not to take it for a
// peer's own (defaultExclusionGracePeriod in k8s.io/apiserver/pkg/util/peerproxy/peerproxy.go).
const gracePeriod = 5 * time.Minute

var crdGracePeriod = scenario.Scenario{
	Name: "crd-grace-period",
	Happens: "While versions are mixed, a custom resource of two versions is defined, and a server is restarted, so that all fetch each other's documents " +
		"while it is there. It loses a version and is deleted, and the servers are watched until everybody has forgotten that there was one.",
	Holds:      "What is gone stays gone when the memory of it ends.",
	Source:     "KEP-4020, goals: discovery reports the same set of resources; k8s.io/apiserver keeps deleted group versions apart for five minutes",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"slow"},
	Control:    mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(2 * time.Second)
		plan.Define(widgets("v1", "v2"))
		plan.Settle(4 * time.Second)
		plan.Restart(plan.Servers[len(plan.Servers)-1].Name)
		plan.Settle(4 * time.Second)
		plan.Define(widgets("v2"))
		plan.Settle(4 * time.Second)
		plan.Undefine(widgets("v2"))
		plan.Soak(gracePeriod + 45*time.Second)
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 5000, Unserved: 100}
		return *plan
	},
}
