package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var nodeIdentity = scenario.Scenario{
	Name: "node-identity",
	Happens: "Only the first server runs TO. A kubelet asks every server for what kubelets ask for, also for resources that only the first " +
		"serves. A server is restarted.",
	Holds: "What the kubelet may do does not depend on which server it asks.",
	Source: "KEP-4020, proxy transport between apiservers and authn: the destination authorizes the user who sent the request; Kubernetes' " +
		"node authorization: the rules for kubelets are compiled into each version",
	About:   []string{"NoFalseNotFound", "AuthorizedAlike", "IdentityPreserved", "NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NoFalseNotFound", "AuthorizedAlike"}},
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 200, PassedOn: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Nodes = 20
		plan.Settle(10 * time.Second)
		plan.Restart("b")
		plan.Converge()
	}),
}
