package scenarios

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var manyResources = scenario.Scenario{
	Name: "many-resources",
	Happens: "Versions are mixed. A hundred custom resources are defined at once, each in its own group and with three versions. Every " +
		"third one is deleted again while a server is restarted.",
	Holds:      "Many resources are handled like a few: the same document on every server, in the same order.",
	Source:     "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 3,
	Limits:     scenario.Limits{Backends: onlySimulated, Reason: "because real servers take minutes to establish so many custom resources"},
	Control:    mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Unserved: 100, MergedDocuments: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		of := func(i int) scenario.Definition {
			return scenario.Definition{Group: fmt.Sprintf("g%02d.example.com", i), Resource: "widgets",
				Versions: []string{"v1", "v1beta1", "v1alpha1"}}
		}
		plan.Settle(3 * time.Second)
		for i := range manyGroups {
			plan.Define(of(i))
		}
		plan.Settle(8 * time.Second)
		plan.Sweep()
		for i := 0; i < manyGroups; i += 3 {
			plan.Undefine(of(i))
			if i == manyGroups/2/3*3 {
				plan.Restart("b")
			}
		}
		plan.Converge()
	}),
}

// manyGroups is the number of groups, each with one custom resource of three versions.
const manyGroups = 100
