package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var crdLifecycle = scenario.Scenario{
	Name:       "crd-lifecycle",
	Happens:    "Versions are mixed. A custom resource is defined, gets a second version, loses the first, and is deleted.",
	Holds:      "Every server serves and lists exactly the versions that exist.",
	Source:     "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked; no stale entry, no false 404",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"conformance"},
	Control:    mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 3000, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		lifecycle(plan, widgets, 6*time.Second, 6*time.Second)
		plan.Converge()
	}),
}

var crdWithoutPeers = scenario.Scenario{
	Name: "crd-without-peers",
	Happens: "All servers run TO. All but the first are stopped for good. Then a custom resource is defined, gets a second version, loses " +
		"the first, and is deleted.",
	Holds:      "A server without peers lists exactly what it serves.",
	Source:     "KEP-4020, goals: discovery reports what can be accessed, with peers or without; no stale entry",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"conformance"},
	Control:    scenario.Control{Defect: "document-kept", Invariants: []string{"DiscoveryComplete"}},
	Plan: planned(allTo, pressure{Operations: 3000, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		for _, name := range plan.Names()[1:] {
			plan.Stop(name)
		}
		plan.Settle(6 * time.Second)
		lifecycle(plan, widgets, 4*time.Second, 6*time.Second)
		plan.Converge()
	}),
}

var crdGracePeriod = scenario.Scenario{
	Name: "crd-grace-period",
	Happens: "Versions are mixed. A custom resource with two versions is defined, and a server is restarted, so that all servers fetch " +
		"each other's documents while it exists. The resource loses a version and is deleted, and the run goes on until no server " +
		"remembers it.",
	Holds: "What was deleted does not come back when servers forget that it was deleted.",
	Source: "KEP-4020, goals: discovery reports the same set of resources; k8s.io/apiserver keeps deleted group versions apart for five " +
		"minutes",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"slow"},
	Control:    mixedToTheEnd,
	Plan: forgotten(widgets, func(plan *scenario.Plan) {
		plan.Define(widgets("v2"))
		plan.Settle(4 * time.Second)
		plan.Undefine(widgets("v2"))
	}),
}

var crdVersionGracePeriod = scenario.Scenario{
	Name: "crd-version-grace-period",
	Happens: "Versions are mixed. A custom resource with two versions is defined, and a server is restarted, so that all servers fetch " +
		"each other's documents while both versions exist. The resource loses the first version and keeps the second, and the run " +
		"goes on until no server remembers the first.",
	Holds:      "The deleted version does not come back when servers forget that it was deleted. The other version is available all the time.",
	Source:     crdGracePeriod.Source,
	About:      crdGracePeriod.About,
	MinServers: 2,
	Family:     scenario.Discovery,
	Labels:     []string{"slow"},
	Control:    mixedToTheEnd,
	Plan:       forgotten(widgets, func(plan *scenario.Plan) { plan.Define(widgets("v2")) }),
}
