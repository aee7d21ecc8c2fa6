package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var crdVersionGracePeriod = Scenario{
	Name: "crd-version-grace-period",
	Happens: "While versions are mixed, a custom resource of two versions is defined, and a server is restarted, so that all fetch each other's documents " +
		"while both are there. It loses the first version, goes on with the second, and the servers are watched until everybody has forgotten the first.",
	Holds:      "The version that is gone stays gone when the memory of it ends, and the one that is left can be had all the time.",
	Source:     crdGracePeriod.Source,
	About:      crdGracePeriod.About,
	MinServers: 2,
	Family:     Discovery,
	Labels:     []string{"slow"},
	Control:    mixedToTheEnd,
	Plan:       func(p Parameters) Plan { return p.losesAVersion(widgets) },
}

// losesAVersion lets a definition, whose versions are in what the servers know of each other, lose one of them, and outlasts the memory of that. That the whole
// definition goes is another matter, see crd-grace-period: then its group is gone, too.
func (p Parameters) losesAVersion(of func(versions ...string) Definition) Plan {
	plan := p.cluster(p.newest)
	plan.settle(2 * time.Second)
	plan.define(of("v1", "v2"))
	plan.settle(4 * time.Second)
	plan.restart(plan.Servers[len(plan.Servers)-1].Name)
	plan.settle(4 * time.Second)
	plan.define(of("v2"))
	plan.soak(gracePeriod + 45*time.Second)
	plan.converge()
	plan.Pressure = history.Pressure{Operations: 5000, Unserved: 100}
	return *plan
}
