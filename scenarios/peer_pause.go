package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var peerPause = scenario.Scenario{
	Name:             "peer-pause",
	Happens:          "The first server alone runs TO. Its process is stopped in its tracks (SIGSTOP): connections stay open and nothing answers. Then it runs on.",
	Holds:            "Meanwhile the others answer 503, within a bounded time and never 404, for what only the first serves; all is well soon after.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Pause, Server: "a"})
		plan.Soak(p.Bounds.Unavailable + 10*time.Second) // requests must have had the time to take too long
		plan.Add(scenario.Step{Action: scenario.Resume, Server: "a"})
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 100}
		return *plan
	},
}
