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

// collectorLooks is a little longer than 30 seconds, the interval at which the garbage collector
// looks for new and lost kinds (k8s.io/kubernetes, cmd/kube-controller-manager/app/core.go).
const collectorLooks = 35 * time.Second

// countersLag is the time until a quota counts existing objects. The quota controller counts a new
// quota from the events of its informers so far. It counts again only after a deletion, or after
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

// work is the work of controllers: they keep the dependents of owners until the owners are deleted,
// and empty the namespaces that are deleted as a whole.
type work struct {
	owners     scenario.Objects
	namespaces []scenario.Objects
}

// giveWork creates the work. The names of all its namespaces begin with name.
func giveWork(plan *scenario.Plan, name string, namespaces int) work {
	w := work{owners: scenario.Objects{Name: name, Dependents: 3}}
	plan.CreateObjects(w.owners)
	for i := range namespaces {
		w.namespaces = append(w.namespaces, scenario.Objects{Name: fmt.Sprintf("%s-whole-%d", name, i), Dependents: 1})
		plan.CreateObjects(w.namespaces[i])
	}
	return w
}

// delete deletes the owners, and then one namespace after the other. It waits between these
// deletions, so that controllers behind a load balancer handle each on another connection.
func (w work) delete(plan *scenario.Plan) {
	plan.DeleteOwners(w.owners, scenario.Background)
	for _, o := range w.namespaces {
		plan.DeleteNamespace(o)
		plan.Soak(4 * time.Second)
	}
}
