package scenarios

import (
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

var pressureOfControllers = pressure{Operations: 1000, Owners: 10}

// controlled is the plan of scenarios in which the first server alone runs TO.
func controlled(steps func(*scenario.Plan, scenario.Parameters)) func(scenario.Parameters) scenario.Plan {
	return planned(firstTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(2 * time.Second)
		steps(plan, p)
	})
}
