package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// shutdownDelay is longer than the load balancer needs to see that a server is not ready: two
// failed checks of /readyz. A real control plane has 20 s or more.
const shutdownDelay = 12 * time.Second

var drain = scenario.Scenario{
	Name: "drain",
	Happens: "Only the first server runs TO. It is stopped twice, each time with a shutdown delay: its /readyz fails at once, and it goes on " +
		"to serve for 12 s. The second time, it also ends its own watches afterwards. Clients ask every server. Informers keep watches open at " +
		"every server and at a load balancer that follows /readyz (local processes only: the simulator has no informers and no load " +
		"balancer).",
	Holds: "As long as the first server serves, the others pass requests on to it, and answer none with 404. When it is back, every server " +
		"can again answer requests for resources that only TO serves.",
	Source: "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists; k8s.io/apiserver, " +
		"pkg/server/genericapiserver.go: --shutdown-delay-duration gives load balancers the time to send no more requests",
	About:  []string{"NoFalseNotFound", "Available", "NoCrash", "Converges"},
	Labels: []string{"slow"},
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal, scenario.BackendSim},
		Reason:   "because a kubelet kills a server 30 s after it has told it to stop",
	},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 400}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Informers = true
		delayed := scenario.Setup{ShutdownDelay: shutdownDelay}
		plan.Servers[0].Setup = &delayed
		ending := delayed
		ending.WatchTermination = 3 * time.Second
		plan.Settle(3 * time.Second)
		plan.Stop("a")
		plan.Add(scenario.Step{Action: scenario.Start, Server: "a", Setup: &ending})
		plan.Settle(3 * time.Second)
		plan.Stop("a")
		plan.Start("a")
		plan.Converge()
	}),
}
