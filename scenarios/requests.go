package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var watchThroughProxy = scenario.Scenario{
	Name: "watch-through-proxy",
	Happens: "The first server runs TO, the others FROM. Most requests are watches of one to ten seconds, many of them passed on. In " +
		"between, the server to which they are passed on is restarted, unless the run must not change anything.",
	Holds: "Watches of what only another server serves are established, last as long as they were asked to, and deliver events of what " +
		"is created meanwhile. Those that the restart breaks can be started again.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it; controllers live by watches",
	About:            []string{"NoFalseNotFound", "WatchesLast", "NoLoop", "PassedOnUnchanged", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.WatchTraffic
		plan.Settle(20 * time.Second)
		if p.ReadOnly {
			plan.Soak(15 * time.Second) // external servers get fewer requests, so enough of them take longer
		} else {
			plan.Restart("a")
		}
		plan.Settle(10 * time.Second)
		plan.Converge()
	}),
}

var subresources = scenario.Scenario{
	Name: "subresources",
	Happens: "The first server runs TO, the others FROM. Most requests are for subresources (status, scale and others): of resources that " +
		"all servers serve, of resources that only some serve, and those that only some servers have for a resource that all serve.",
	Holds:            "Every server can answer requests for a subresource that some server has.",
	Source:           "KEP-4020, goals: everything that discovery lists can be accessed",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryAccessible", "PassedOnUnchanged"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 3000, Skewed: 300, Unserved: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.SubresourceTraffic
		plan.Settle(20 * time.Second)
		plan.Sweep()
		plan.Converge()
	}),
}

var upgradeRequests = scenario.Scenario{
	Name: "upgrade-requests",
	Happens: "The first server runs TO, the others FROM. Beside the general load, clients ask for connections to be upgraded: watches over " +
		"WebSocket, of resources that all or only some servers serve, and exec, attach and port-forward to a pod that does not exist.",
	Holds: "A watch over WebSocket of what only another server serves lasts as long as it was asked to and delivers events, as one at " +
		"that server does. No request is denied because it asks for an upgrade.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it; RFC 9110, 7.8",
	About:            []string{"NoFalseNotFound", "WatchesLast", "PassedOnUnchanged", "NoLoop", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.UpgradeTraffic
		plan.Settle(25 * time.Second)
		plan.Converge()
	}),
}

var protobufAndPatchTypes = scenario.Scenario{
	Name: "protobuf-and-patch-types",
	Happens: "The first server runs TO, the others FROM. Clients use every media type that servers support (JSON, protobuf, YAML, CBOR, " +
		"tables, partial metadata) and every type of patch.",
	Holds:            "A request that is passed on arrives as it was sent, and the client can read the response.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it; RFC 9110, 7.6 and 12.5.1",
	About:            []string{"NoFalseNotFound", "PassedOnUnchanged", "AnsweredInKind", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Labels:           []string{"conformance"},
	Control:          scenario.Control{Defect: "always-called-text", Invariants: []string{"AnsweredInKind"}},
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.FormatTraffic
		plan.Settle(25 * time.Second)
		plan.Converge()
	}),
}

var largeList = scenario.Scenario{
	Name: "large-list",
	Happens: "The first server runs TO, the others FROM. There are hundreds of objects of a resource that only one of them serves. Clients " +
		"list them from every server, whole and page by page.",
	Holds:            "Every list is complete, whichever server is asked and in however many pages.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it, as that one would",
	About:            []string{"ListsAgree", "NoFalseNotFound", "PassedOnUnchanged", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Control:          scenario.Control{Defect: "last-object-lost", Invariants: []string{"ListsAgree"}},
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.LargeListTraffic
		plan.Settle(40 * time.Second)
		plan.Converge()
	}),
}
