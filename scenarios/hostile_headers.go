package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var hostileHeaders = scenario.Scenario{
	Name: "hostile-headers",
	Happens: "Only the first server runs TO. Clients send headers that only servers may send: that a peer has passed the request on, and " +
		"that it comes from another user.",
	Holds: "No user is taken for another one, no request is refused or answered 404 because of a header, and no request loops.",
	Source: "KEP-4020, proxy transport between apiservers and authn: requestheader authentication, by which identity headers count only " +
		"from a peer that has proved itself with a front-proxy certificate",
	About:   []string{"NoFalseNotFound", "NoLoop", "IdentityPreserved", "AuthorizedAlike", "AnsweredAlike", "NoCrash", "Available"},
	Labels:  []string{"smoke", "conformance"},
	Control: scenario.Control{Defect: "client-believed-and-denied", Invariants: []string{"NoFalseNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, PassedOn: 250, ForgedHops: 40},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Nodes = aFewNodes
			plan.Traffic = scenario.HostileTraffic
			plan.Settle(15 * time.Second)
			plan.Restart("b")
			plan.Converge()
		}),
}
