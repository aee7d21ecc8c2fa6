package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var aggregatedAPIGracePeriod = scenario.Scenario{
	Name: "aggregated-api-grace-period",
	Happens: "While versions are mixed, an API of two versions that another program serves is registered with the servers, and one of them is restarted, so that all fetch " +
		"each other's documents while both are there. The first version is removed, and the servers are watched until everybody has forgotten it.",
	Holds:      crdVersionGracePeriod.Holds,
	Source:     crdGracePeriod.Source,
	About:      crdGracePeriod.About,
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"slow"},
	Limits:     aggregatedAPILifecycle.Limits,
	Control:    mixedToTheEnd,
	Plan:       func(p scenario.Parameters) scenario.Plan { return losesAVersion(p, gauges) },
}
