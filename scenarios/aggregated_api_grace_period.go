package scenarios

var aggregatedAPIGracePeriod = Scenario{
	Name: "aggregated-api-grace-period",
	Happens: "While versions are mixed, an API of two versions that another program serves is registered with the servers, and one of them is restarted, so that all fetch " +
		"each other's documents while both are there. The first version is removed, and the servers are watched until everybody has forgotten it.",
	Holds:      crdVersionGracePeriod.Holds,
	Source:     crdGracePeriod.Source,
	About:      crdGracePeriod.About,
	MinServers: 2,
	Family:     Discovery,
	Labels:     []string{"slow"},
	Limits:     aggregatedAPILifecycle.Limits,
	Control:    mixedToTheEnd,
	Plan:       func(p Parameters) Plan { return p.losesAVersion(gauges) },
}
