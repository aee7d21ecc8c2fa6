package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var crdVersionGracePeriod = scenario.Scenario{
	Name: "crd-version-grace-period",
	Happens: "Versions are mixed. A custom resource with two versions is defined, and a server is restarted, so that all servers fetch " +
		"each other's documents while both versions exist. The resource loses the first version and keeps the second, and the run " +
		"goes on until no server remembers the first.",
	Holds:   "The deleted version does not come back when servers forget that it was deleted. The other version is available all the time.",
	Source:  crdGracePeriod.Source,
	About:   crdGracePeriod.About,
	Labels:  []string{"slow"},
	Control: mixedToTheEnd,
	Plan:    forgotten(widgets, func(plan *scenario.Plan) { plan.Define(widgets("v2")) }),
}
