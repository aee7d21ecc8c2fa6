package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var aggregatedAPILifecycle = scenario.Scenario{
	Name: "aggregated-api-lifecycle",
	Happens: "While versions are mixed, an API that another program serves is registered with the servers, gets a second version, loses the first, " +
		"and is removed.",
	Holds: "Every server passes it on to that program itself and lists exactly the versions that there are. The program is there for as long as the API is registered: what " +
		"is said of one that is down is each server's own affair, in its own time (503, and a version without resources that is marked stale), and not looked at.",
	Source:     "KEP-4020, design details: aggregated APIs are served by every apiserver and are no business of peers",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Discovery,
	Limits:     scenario.Limits{Backends: []string{scenario.BackendLocal, scenario.BackendSim}, Reason: "because it needs a program behind the API, which other backends do not run"},
	Control:    mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(2 * time.Second)
		lifecycle(plan, gauges, 8*time.Second, 8*time.Second)
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 3000, Unserved: 100}
		return *plan
	},
}
