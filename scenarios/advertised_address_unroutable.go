package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var advertisedAddressUnroutable = scenario.Scenario{
	Name: "advertised-address-unroutable",
	Happens: "The first server alone runs TO. It is restarted with no address for its peers at all: what it finds on its own host leads nowhere from theirs. " +
		"Then it is given the right one.",
	Holds: "As long as they cannot reach it, the others answer 503 within a bounded time, and never 404, for what it alone serves; " +
		"all is well with the right address.",
	Source:           "k8s.io/apiserver, pkg/server/options/serving.go (DefaultExternalAddress): without --advertise-address the address is that of --bind-address, or of the host's default interface; KEP-4020, goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("a", scenario.Setup{Advertise: scenario.AdvertiseHost})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
