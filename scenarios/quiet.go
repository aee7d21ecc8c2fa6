package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// quiet is the control: whatever fails here needs no fault.
var quiet = scenario.Scenario{
	Name:    "quiet",
	Happens: "Nothing is done to a control plane whose first server runs TO and whose other servers run FROM.",
	Holds:   "What some server serves can be had from every server, what none serves is 404, and all list the same, of which everything can be had.",
	Source:  "KEP-4020, goals",
	About: []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Upgrades,
	Labels:     []string{"smoke", "conformance"},
	Control:    mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(10 * time.Second)
		plan.Sweep()
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 1000, Unserved: 50}
		if p.Mixed() {
			plan.Pressure.Skewed = 200
		}
		return *plan
	},
}
