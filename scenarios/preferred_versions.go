package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var preferredVersions = Scenario{
	Name: "preferred-versions",
	Happens: "The first server runs TO, the others FROM, and there is a custom resource of two versions, unless nothing may be changed. Clients do as kubectl does: they ask a server " +
		"for discovery and take the first version of a resource that it lists.",
	Holds:            "What they take works on every server.",
	Source:           "KEP-4020, goals: everything that discovery lists can be accessed",
	About:            []string{"DiscoveryAccessible", "NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Discovery,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.Traffic = DiscoveryTraffic
		if !p.ReadOnly { // built-in groups have several versions as well
			plan.define(widgets("v1", "v2"))
		}
		plan.settle(15 * time.Second)
		plan.sweep()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 1000, Skewed: 200}
		return *plan
	},
}
