package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var crdGracePeriod = scenario.Scenario{
	Name: "crd-grace-period",
	Happens: "Versions are mixed. A custom resource with two versions is defined, and a server is restarted, so that all servers fetch " +
		"each other's documents while it exists. The resource loses a version and is deleted, and the run goes on until no server " +
		"remembers it.",
	Holds: "The deleted resource and the deleted version do not come back when servers forget the deletion.",
	Source: "KEP-4020, goals: discovery reports the same set of resources; k8s.io/apiserver keeps deleted group versions apart for five " +
		"minutes",
	About: []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "VersionOrder", "DiscoveryComplete", "NoCrash",
		"Converges"},
	Labels:  []string{"slow"},
	Control: mixedToTheEnd,
	Plan: forgotten(widgets, func(plan *scenario.Plan) {
		plan.Define(widgets("v2"))
		plan.Settle(4 * time.Second)
		plan.Undefine(widgets("v2"))
	}),
}
