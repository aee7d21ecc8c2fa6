package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var aggregatedAPIGracePeriod = scenario.Scenario{
	Name: "aggregated-api-grace-period",
	Happens: "Versions are mixed. An aggregated API with two versions is registered, and one server is restarted, so that all servers " +
		"fetch each other's documents while both versions exist. The first version is removed, and the run goes on until no server " +
		"remembers it.",
	Holds:   crdVersionGracePeriod.Holds,
	Source:  crdGracePeriod.Source,
	About:   crdGracePeriod.About,
	Labels:  []string{"slow"},
	Limits:  aggregatedAPILifecycle.Limits,
	Control: mixedToTheEnd,
	Plan:    forgotten(gauges, func(plan *scenario.Plan) { plan.Define(gauges("v2")) }),
}
