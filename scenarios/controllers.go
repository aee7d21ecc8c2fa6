package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// collected are the objects of scenarios with controllers.
var collected = scenario.Objects{Name: "collected", Dependents: 5}

// withControllers is for scenarios with a kube-controller-manager of their own. It is of the older
// version: by Kubernetes' version skew policy it is never newer than a kube-apiserver that it talks
// to.
var withControllers = scenario.Limits{
	Backends: []string{scenario.BackendLocal},
	Reason:   "because only there the run starts kube-controller-manager and reads etcd",
}

var pressureOfControllers = pressure{Operations: 1000, Owners: 10}

// controlled is the plan of scenarios in which the first server alone runs TO.
func controlled(steps func(*scenario.Plan, scenario.Parameters)) func(scenario.Parameters) scenario.Plan {
	return planned(firstTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(2 * time.Second)
		steps(plan, p)
	})
}
