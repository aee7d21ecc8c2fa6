package scenarios

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// manyGroups is how many groups of custom resources there are to be, each of a resource with three versions.
const manyGroups = 100

var manyResources = scenario.Scenario{
	Name: "many-resources",
	Happens: "While versions are mixed, a hundred custom resources are defined at once, each in a group of its own and with three versions; every third " +
		"is deleted again while a server is restarted.",
	Holds:      "What holds of a few resources holds of many: the same document everywhere, in the same order.",
	Source:     "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 3,
	Family:     scenario.Scale,
	Limits:     scenario.Limits{Backends: onlySimulated, Reason: "because real servers take minutes to establish so many custom resources"},
	Control:    mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		of := func(i int) scenario.Definition {
			return scenario.Definition{Group: fmt.Sprintf("g%02d.example.com", i), Resource: "widgets", Versions: []string{"v1", "v1beta1", "v1alpha1"}}
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
		plan.Pressure = history.Pressure{Operations: 5000, Unserved: 100}
		return *plan
	},
}
