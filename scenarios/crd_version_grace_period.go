package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var crdVersionGracePeriod = scenario.Scenario{
	Name: "crd-version-grace-period",
	Happens: "Versions are mixed. A custom resource with two versions is defined, and a server is restarted, so that all servers fetch " +
		"each other's documents while both versions exist. The resource loses the first version and keeps the second, and the run " +
		"goes on until no server remembers the first.",
	Holds:      "The deleted version does not come back when servers forget that it was deleted. The other version is available all the time.",
	Source:     crdGracePeriod.Source,
	About:      crdGracePeriod.About,
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"slow"},
	Control:    mixedToTheEnd,
	Plan:       func(p scenario.Parameters) scenario.Plan { return losesAVersion(p, widgets) },
}

// losesAVersion removes one version of a definition that the servers know of each other, and waits
// until they forget it. In crd-grace-period the whole definition, and so its group, is removed.
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
