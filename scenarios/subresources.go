package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var subresources = scenario.Scenario{
	Name: "subresources",
	Happens: "The first server runs TO, the others FROM. Most requests are about subresources (status, scale and the like): of resources that all serve, " +
		"of those that only some do, and such as only some servers have of a resource that all serve.",
	Holds:            "A subresource that some server has can be had from every server.",
	Source:           "KEP-4020, goals: everything that discovery lists can be accessed",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryAccessible", "PassedOnUnchanged"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Traffic = scenario.SubresourceTraffic
		plan.Settle(20 * time.Second)
		plan.Sweep()
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 3000, Skewed: 300, Unserved: 50}
		return *plan
	},
}
