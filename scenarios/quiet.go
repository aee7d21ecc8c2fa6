package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// quiet is the control: whatever fails here needs no fault.
var quiet = Scenario{
	Name:    "quiet",
	Happens: "Nothing is done to a control plane whose first server runs TO and whose other servers run FROM.",
	Holds:   "What some server serves can be had from every server, what none serves is 404, and all list the same, of which everything can be had.",
	Source:  "KEP-4020, goals",
	About: []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     Upgrades,
	Labels:     []string{"smoke", "conformance"},
	Control:    mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(10 * time.Second)
		plan.sweep()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 1000, Unserved: 50}
		if p.Mixed() {
			plan.Pressure.Skewed = 200
		}
		return *plan
	},
}
