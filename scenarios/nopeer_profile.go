package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var nopeerProfile = Scenario{
	Name: "nopeer-profile",
	Happens: "The first server runs TO, the others FROM, and a custom resource comes and goes, unless nothing may be changed. Clients ask for the merged documents and, with " +
		"profile=nopeer, for what each server serves by itself.",
	Holds:            "With the profile a server lists what it serves itself and nothing of its peers; without it, all.",
	Source:           "KEP-4020, design details: the nopeer profile of aggregated discovery is the local server's view",
	About:            []string{"NoPeerIsLocal", "DiscoveryComplete", "DiscoveryDeterministic"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Discovery,
	Labels:           []string{"conformance"},
	Control:          Control{Defect: "own-view-of-all", Invariants: []string{"NoPeerIsLocal"}},
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.Traffic = DiscoveryTraffic
		plan.settle(6 * time.Second)
		if !p.ReadOnly {
			plan.define(widgets("v1"))
		}
		plan.settle(6 * time.Second)
		if !p.ReadOnly {
			plan.undefine(widgets("v1"))
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 1000, Skewed: 100}
		return *plan
	},
}
