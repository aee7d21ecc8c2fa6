package scenarios

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// collected are the objects of scenarios with controllers.
var collected = scenario.Objects{Name: "collected", Dependents: 5}

// withControllers is for scenarios with their own kube-controller-manager. It runs the older
// version, because by Kubernetes' version skew policy it must not be newer than a kube-apiserver to
// which it connects.
var withControllers = scenario.Limits{
	Backends: []string{scenario.BackendLocal},
	Reason:   "because only there the run starts kube-controller-manager and reads etcd",
}

// collectorLooks is a little longer than the garbage collector waits until it looks for new and lost
// kinds again: 30 seconds (k8s.io/kubernetes, cmd/kube-controller-manager/app/core.go).
const collectorLooks = 35 * time.Second

// countersLag is how long objects exist before a quota counts them. The quota controller counts a new
// quota from what its informers have told it so far, and counts again only after a deletion, or after
// five minutes (k8s.io/kubernetes, pkg/controller/resourcequota).
const countersLag = 5 * time.Second

var pressureOfControllers = pressure{Operations: 1000, Owners: 10}

// controlled is the plan of scenarios in which the first server alone runs TO.
func controlled(steps func(*scenario.Plan, scenario.Parameters)) func(scenario.Parameters) scenario.Plan {
	return planned(firstTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(2 * time.Second)
		steps(plan, p)
	})
}

// work is what controllers have to do: they keep the dependents of owners until the owners are
// deleted, and empty the namespaces that are deleted as a whole.
type work struct {
	owners     scenario.Objects
	namespaces []scenario.Objects
}

// giveWork creates it. The names of all its namespaces begin with name.
func giveWork(plan *scenario.Plan, name string, namespaces int) work {
	w := work{owners: scenario.Objects{Name: name, Dependents: 3}}
	plan.CreateObjects(w.owners)
	for i := range namespaces {
		w.namespaces = append(w.namespaces, scenario.Objects{Name: fmt.Sprintf("%s-whole-%d", name, i), Dependents: 1})
		plan.CreateObjects(w.namespaces[i])
	}
	return w
}

// delete deletes the owners, then one namespace after the other. It waits in between, so that each
// is deleted by another connection of controllers behind a load balancer.
func (w work) delete(plan *scenario.Plan) {
	plan.DeleteOwners(w.owners, scenario.Background)
	for _, o := range w.namespaces {
		plan.DeleteNamespace(o)
		plan.Soak(4 * time.Second)
	}
}
