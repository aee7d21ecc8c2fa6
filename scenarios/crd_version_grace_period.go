package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var crdVersionGracePeriod = scenario.Scenario{
	Name: "crd-version-grace-period",
	Happens: "While versions are mixed, a custom resource of two versions is defined, and a server is restarted, so that all fetch each other's documents " +
		"while both are there. It loses the first version, goes on with the second, and the servers are watched until everybody has forgotten the first.",
	Holds:      "The version that is gone stays gone when the memory of it ends, and the one that is left can be had all the time.",
	Source:     crdGracePeriod.Source,
	About:      crdGracePeriod.About,
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"slow"},
	Control:    mixedToTheEnd,
	Plan:       func(p scenario.Parameters) scenario.Plan { return losesAVersion(p, widgets) },
}

// losesAVersion lets a definition, whose versions are in what the servers know of each other, lose one of them, and outlasts the memory of that. That the whole
// definition goes is another matter, see crd-grace-period: then its group is gone, too.
func losesAVersion(p scenario.Parameters, of func(versions ...string) scenario.Definition) scenario.Plan {
	plan := p.Cluster(p.Newest)
	plan.Settle(2 * time.Second)
	plan.Define(of("v1", "v2"))
	plan.Settle(4 * time.Second)
	plan.Restart(plan.Servers[len(plan.Servers)-1].Name)
	plan.Settle(4 * time.Second)
	plan.Define(of("v2"))
	plan.Soak(gracePeriod + 45*time.Second)
	plan.Converge()
	plan.Pressure = history.Pressure{Operations: 5000, Unserved: 100}
	return *plan
}
