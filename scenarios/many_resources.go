package scenarios

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// manyGroups is how many groups of custom resources there are to be, each of a resource with three versions.
const manyGroups = 100

var manyResources = Scenario{
	Name: "many-resources",
	Happens: "While versions are mixed, a hundred custom resources are defined at once, each in a group of its own and with three versions; every third " +
		"is deleted again while a server is restarted.",
	Holds:      "What holds of a few resources holds of many: the same document everywhere, in the same order.",
	Source:     "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 3,
	Family:     Scale,
	Limits:     Limits{Backends: onlySimulated, Reason: "because real servers take minutes to establish so many custom resources"},
	Control:    mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		of := func(i int) Definition {
			return Definition{Group: fmt.Sprintf("g%02d.example.com", i), Resource: "widgets", Versions: []string{"v1", "v1beta1", "v1alpha1"}}
		}
		plan.settle(3 * time.Second)
		for i := range manyGroups {
			plan.define(of(i))
		}
		plan.settle(8 * time.Second)
		plan.sweep()
		for i := 0; i < manyGroups; i += 3 {
			plan.undefine(of(i))
			if i == manyGroups/2/3*3 {
				plan.restart("b")
			}
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Unserved: 100}
		return *plan
	},
}
