package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var loopByMutualStaleBelief = scenario.Scenario{
	Name: "loop-by-mutual-stale-belief",
	Happens: "Every server serves a custom resource and knows that the others do. It is deleted while two servers cannot reach each other, " +
		"and then the network is healed: no server serves the resource, and each of the two may believe for minutes that the other " +
		"does. Some clients forge the header by which servers mark requests that they pass on, with any value.",
	Holds: "No request goes from one server to another and back, or on to a third. What no server serves is soon answered 404 again, and " +
		"still is when everything that servers remember for some minutes has expired.",
	Source: "KEP-4020, risks and mitigations 4: a rerouted request is never rerouted again; k8s.io/apiserver, pkg/util/peerproxy: what " +
		"was a custom resource is kept out of peers' documents for five minutes more",
	About:      []string{"TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Safety,
	Labels:     []string{"slow"},
	Control:    scenario.Control{Defect: "denial-believed", Invariants: []string{"NoLoop"}},
	Plan: planned(firstTo, pressure{Operations: 10000, Unserved: 500}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.HostileTraffic
		servers := plan.Names()
		gadgets := &scenario.Definition{Group: "loop.skewproof.dev", Resource: "gadgets", Versions: []string{"v1"}}
		plan.Settle(2 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Define, Definition: gadgets})
		plan.Restart(servers[len(servers)-1]) // so that all servers fetch each other's documents
		plan.Settle(5 * time.Second)
		heal := plan.Suffer(cut("a", "b"), cut("b", "a"))
		plan.Soak(time.Second)
		plan.Add(scenario.Step{Action: scenario.Undefine, Definition: gadgets})
		plan.Settle(5 * time.Second)
		heal()
		plan.Settle(10 * time.Second)
		plan.Soak(6 * time.Minute)
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
	}),
}

var hostileHeaders = scenario.Scenario{
	Name: "hostile-headers",
	Happens: "Only the first server runs TO. Clients send headers that only servers may send: that a peer has passed the request on, that " +
		"it comes from another user who may do anything, and random values of every length.",
	Holds: "No user is taken for another one, no request is refused or answered 404 because of a header, and no request loops.",
	Source: "KEP-4020, proxy transport between apiservers and authn: requestheader authentication, by which identity headers count only " +
		"from a peer that has proved itself with a front-proxy certificate",
	About:            []string{"NoFalseNotFound", "NoLoop", "IdentityPreserved", "AuthorizedAlike", "NoCrash", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Safety,
	Labels:           []string{"smoke", "conformance"},
	Control:          scenario.Control{Defect: "client-believed-and-denied", Invariants: []string{"NoFalseNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 100, Skewed: 500}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.HostileTraffic
		plan.Settle(15 * time.Second)
		plan.Restart("b")
		plan.Converge()
	}),
}

var identityPreserved = scenario.Scenario{
	Name: "identity-preserved",
	Happens: "Only the first server runs TO. Users who may do everything, who may only read, and who may write only in one namespace ask " +
		"every server for everything. A server is restarted, and a connection between servers is reset.",
	Holds: "A request that is passed on is carried out as the user who sent it. What a user may do does not depend on which server is " +
		"asked.",
	Source:           "KEP-4020, proxy transport between apiservers and authn: the destination takes the user from headers of a trusted peer",
	About:            []string{"NoFalseNotFound", "NoLoop", "IdentityPreserved", "AuthorizedAlike", "PassedOnUnchanged", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Safety,
	Labels:           []string{"conformance"},
	Control:          scenario.Control{Defect: "proxy-asks-for-itself", Invariants: []string{"IdentityPreserved"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 100, Skewed: 500}, func(plan *scenario.Plan, _ scenario.Parameters) {
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

// resets is how often connections are reset under the writes.
const resets = 15

var writesOnce = scenario.Scenario{
	Name: "writes-once",
	Happens: "The first two servers run TO, the others FROM. Fifteen times, for a second, the connections from the last server to both are " +
		"reset when a response comes back: the request has been carried out by then.",
	Holds: "A write whose response was lost is not sent to the other server. It is carried out at most once, and its client gets an " +
		"error.",
	Source:           "RFC 9110, 9.2.2: a proxy must not automatically retry what is not idempotent",
	About:            []string{"NoFalseNotFound", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Safety,
	Labels:           []string{"conformance"},
	Control:          scenario.Control{Defect: "broken-counts-as-undelivered", Invariants: []string{"WritesOnce"}},
	Plan: planned(firstTwoTo, pressure{Operations: 4000, Skewed: 500}, func(plan *scenario.Plan, _ scenario.Parameters) {
		last := plan.Names()[len(plan.Servers)-1]
		plan.Settle(2 * time.Second)
		for range resets {
			heal := plan.Suffer(
				fault.Fault{Kind: fault.Reset, From: last, To: "a", Direction: fault.Down},
				fault.Fault{Kind: fault.Reset, From: last, To: "b", Direction: fault.Down})
			plan.Soak(time.Second)
			heal()
			plan.Soak(700 * time.Millisecond)
		}
		plan.Converge()
	}),
}

var trueNotFound = scenario.Scenario{
	Name: "true-404",
	Happens: "Only the first server runs TO. Clients ask for what no server serves: invented groups, versions, resources and subresources " +
		"beside real ones, and a custom resource before it is defined and after it was deleted. In between, the link between two " +
		"servers is cut, and a server is restarted.",
	Holds: "What no server serves is answered 404, and 503 only while a server cannot know that.",
	Source: "KEP-4020, design details, aggregation layer: a request for which there is no eligible peer is handled locally, and 404 if " +
		"the resource does not exist",
	About:      []string{"TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Family:     scenario.Safety,
	Labels:     []string{"conformance"},
	Control:    scenario.Control{Defect: "absence-becomes-refusal", Invariants: []string{"TrueNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 500}, func(plan *scenario.Plan, _ scenario.Parameters) {
		gizmos := &scenario.Definition{Group: "absent.skewproof.dev", Resource: "gizmos", Versions: []string{"v1"}}
		plan.Settle(2 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Define, Definition: gizmos})
		plan.Settle(2 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Undefine, Definition: gizmos})
		plan.Settle(5 * time.Second)
		heal := plan.Suffer(cut("b", "a"))
		plan.Settle(2 * time.Second)
		heal()
		plan.Restart("c")
		plan.Settle(5 * time.Second)
		plan.Converge()
	}),
}
