package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var identityPreserved = scenario.Scenario{
	Name: "identity-preserved",
	Happens: "Only the first server runs TO. Users who may do everything, who may only read, and who may write only in one namespace ask " +
		"every server for everything. A server is restarted, and a connection between servers is reset.",
	Holds: "A request that is passed on is carried out as the user who sent it. What a user may do does not depend on which server is " +
		"asked.",
	Source: "KEP-4020, proxy transport between apiservers and authn: the destination takes the user from headers of a trusted peer",
	About: []string{
		"NoFalseNotFound", "NoLoop", "IdentityPreserved", "AuthorizedAlike", "AnsweredAlike", "PassedOnUnchanged", "NoCrash", "Converges",
	},
	Labels:  []string{"conformance"},
	Control: scenario.Control{Defect: "proxy-asks-for-itself", Invariants: []string{"IdentityPreserved"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, PassedOn: 400}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(15 * time.Second)
		plan.Restart("b")
		plan.Settle(5 * time.Second)
		heal := plan.Suffer(fault.Fault{Kind: fault.Reset, From: "b", To: "a"})
		plan.Soak(2 * time.Second)
		heal()
		plan.Sweep()
		plan.Converge()
	}),
}
