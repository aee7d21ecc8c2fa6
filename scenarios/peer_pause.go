package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var peerPause = Scenario{
	Name:             "peer-pause",
	Happens:          "The first server alone runs TO. Its process is stopped in its tracks (SIGSTOP): connections stay open and nothing answers. Then it runs on.",
	Holds:            "Meanwhile the others answer 503, within a bounded time and never 404, for what only the first serves; all is well soon after.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Processes,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(4 * time.Second)
		plan.add(Step{Action: Pause, Server: "a"})
		plan.soak(p.Bounds.Unavailable + 10*time.Second) // requests must have had the time to take too long
		plan.add(Step{Action: Resume, Server: "a"})
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 100}
		return *plan
	},
}
