package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var etagAndLegacyClients = scenario.Scenario{
	Name: "etag-and-legacy-clients",
	Happens: "The first server runs TO, the others FROM; in between, one is upgraded. Clients of every age ask for discovery: aggregated " +
		"and older formats, single groups and versions, JSON and protobuf, and conditionally with the ETag that they got last.",
	Holds: "A client gets 304 only if nothing has changed. Beyond the KEP: in the older formats every server still lists what it serves " +
		"itself, and the document of a group or version is answered 404 only if no server serves it (GroupVersionsDescribed).",
	Source: "KEP-4020, goals, and summary, note 2: all discovery but the merged document stays local; k8s.io/apiserver, " +
		"pkg/endpoints/discovery/aggregated/etag.go; KEP-3352; RFC 9110, 13.1.2",
	About:      []string{"NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "LegacyListsOwn", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Control:    scenario.Control{Defect: "nothing-is-ever-modified", Invariants: []string{"DiscoveryDeterministic"}},
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 100, MergedDocuments: 190, LegacyDocuments: 35},
		func(plan *scenario.Plan, p scenario.Parameters) {
			plan.Traffic = scenario.DiscoveryTraffic
			plan.Settle(8 * time.Second)
			plan.Replace("b", p.To)
			plan.Settle(8 * time.Second)
			plan.Restart("c")
			plan.Converge()
		}),
}
