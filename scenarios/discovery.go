package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var mergedDiscoveryDeterministic = scenario.Scenario{
	Name: "merged-discovery-deterministic",
	Happens: "The first server runs TO, the others FROM, and there is a custom resource. The first three servers are stopped and started " +
		"again, in each of the six orders.",
	Holds:            "Whichever server started first, all servers answer discovery with the same bytes and the same ETag.",
	Source:           "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked",
	About:            []string{"DiscoveryDeterministic", "DiscoveryComplete", "NoFalseNotFound", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Discovery,
	Labels:           []string{"conformance", "slow"},
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 3000, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(3 * time.Second)
		plan.Define(widgets("v1")) // servers differ in where they find its group, see docs/findings.md, 7
		plan.Settle(time.Second)
		for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
			for _, server := range order {
				plan.Stop(server)
			}
			for _, server := range order {
				plan.Start(server)
			}
			plan.Settle(4 * time.Second)
		}
		plan.Converge()
	}),
}

var discoveryConvergence = scenario.Scenario{
	Name: "discovery-convergence",
	Happens: "What is served changes several times: a custom resource is defined and deleted, a server is upgraded, another is stopped and " +
		"started, and a third is restarted. After each change nothing happens for a while.",
	Holds:      "Within seconds of each change all servers answer discovery alike. The report says after how many seconds.",
	Source:     "KEP-4020, service level objectives: what is known of peers is stale for seconds in the normal case",
	About:      []string{"DiscoveryDeterministic", "DiscoveryComplete", "NoFalseNotFound", "Converges"},
	MinServers: 3,
	Family:     scenario.Discovery,
	Labels:     []string{"conformance"},
	Control:    mixedToTheEnd,
	Plan: planned(noneTo, pressure{Operations: 3000}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(2 * time.Second)
		for _, change := range []func(){
			func() { plan.Define(widgets("v1")) },
			func() { plan.Replace("a", p.To) },
			func() { plan.Stop("b") },
			func() { plan.Undefine(widgets("v1")) },
			func() { plan.Start("b") },
			func() { plan.Restart("c") },
		} {
			change()
			plan.Settle(4 * time.Second)
		}
		plan.Converge()
	}),
}

var nopeerProfile = scenario.Scenario{
	Name: "nopeer-profile",
	Happens: "The first server runs TO, the others FROM, and a custom resource is defined and deleted, unless the run must not change " +
		"anything. Clients ask for the merged documents and, with profile=nopeer, for what each server serves itself.",
	Holds:            "With the profile a server lists exactly what it serves itself. Without it, it lists what all servers serve.",
	Source:           "KEP-4020, design details: the nopeer profile of aggregated discovery is the local server's view",
	About:            []string{"NoPeerIsLocal", "DiscoveryComplete", "DiscoveryDeterministic"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Discovery,
	Labels:           []string{"conformance"},
	Control:          scenario.Control{Defect: "own-view-of-all", Invariants: []string{"NoPeerIsLocal"}},
	Plan: planned(firstTo, pressure{Operations: 1000, Skewed: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(6 * time.Second)
		if !p.ReadOnly {
			plan.Define(widgets("v1"))
		}
		plan.Settle(6 * time.Second)
		if !p.ReadOnly {
			plan.Undefine(widgets("v1"))
		}
		plan.Converge()
	}),
}

var preferredVersions = scenario.Scenario{
	Name: "preferred-versions",
	Happens: "The first server runs TO, the others FROM, and there is a custom resource with two versions, unless the run must not change " +
		"anything. Clients do as kubectl does: they ask a server for discovery and use the first version of a resource that it lists.",
	Holds:            "The version that they choose works on every server.",
	Source:           "KEP-4020, goals: everything that discovery lists can be accessed",
	About:            []string{"DiscoveryAccessible", "NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Discovery,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 1000, Skewed: 200}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		if !p.ReadOnly { // built-in groups have several versions as well
			plan.Define(widgets("v1", "v2"))
		}
		plan.Settle(15 * time.Second)
		plan.Sweep()
		plan.Converge()
	}),
}

var etagAndLegacyClients = scenario.Scenario{
	Name: "etag-and-legacy-clients",
	Happens: "The first server runs TO, the others FROM; in between, one is upgraded. Clients of every age ask for discovery: aggregated " +
		"and older formats, single groups and versions, JSON and protobuf, and conditionally with the ETag that they got last.",
	Holds: "A client gets 304 only if nothing has changed. Beyond the KEP: in the older formats every server still lists what it serves " +
		"itself, and the document of a group or version is answered 404 only if no server serves it (GroupVersionsDescribed).",
	Source: "KEP-4020, goals, and summary, note 2: all discovery but the merged document stays local; k8s.io/apiserver, " +
		"pkg/endpoints/discovery/aggregated/etag.go; KEP-3352; RFC 9110, 13.1.2",
	About:            []string{"NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "LegacyListsOwn", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Discovery,
	Labels:           []string{"conformance"},
	Control:          scenario.Control{Defect: "nothing-is-ever-modified", Invariants: []string{"DiscoveryDeterministic"}},
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(8 * time.Second)
		plan.Replace("b", p.To)
		plan.Settle(8 * time.Second)
		plan.Restart("c")
		plan.Converge()
	}),
}

var openAPI = scenario.Scenario{
	Name: "openapi",
	Happens: "The first server runs TO, the others FROM, and a custom resource is defined, unless the run must not change anything. " +
		"Clients ask every server for its OpenAPI descriptions, version 2 and 3.",
	Holds: "Every server answers and describes at least what it serves itself: in the document of version 2, in the index of version 3 " +
		"and, for built-in groups, in the document of each group version.",
	Source:           "beyond KEP-4020, which does not change OpenAPI: kubectl and controllers validate and convert by it",
	About:            []string{"OpenAPIDescribes", "NoFalseNotFound"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Discovery,
	Limits:           scenario.Limits{Backends: []string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendExisting}, Reason: "because the simulator has no OpenAPI"},
	Control:          withoutSteadyState,
	Plan: planned(firstTo, pressure{Operations: 1000, Skewed: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(10 * time.Second)
		if !p.ReadOnly {
			plan.Define(widgets("v1"))
		}
		plan.Settle(15 * time.Second)
		plan.Converge()
	}),
}
