package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// gracePeriod is how long upstream remembers a deleted group version of a custom resource or
// aggregated API, so as not to take it for one that a peer serves (defaultExclusionGracePeriod in
// k8s.io/apiserver/pkg/util/peerproxy/peerproxy.go).
const gracePeriod = 5 * time.Minute

var crdGracePeriod = scenario.Scenario{
	Name: "crd-grace-period",
	Happens: "Versions are mixed. A custom resource with two versions is defined, and a server is restarted, so that all servers fetch " +
		"each other's documents while it exists. The resource loses a version and is deleted, and the run goes on until no server " +
		"remembers it.",
	Holds: "What was deleted does not come back when servers forget that it was deleted.",
	Source: "KEP-4020, goals: discovery reports the same set of resources; k8s.io/apiserver keeps deleted group versions apart for five " +
		"minutes",
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
