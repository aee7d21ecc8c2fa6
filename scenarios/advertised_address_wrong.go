package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var advertisedAddressWrong = scenario.Scenario{
	Name:             "advertised-address-wrong",
	Happens:          "The first server alone runs TO. It is restarted telling its peers an address at which nobody listens, and then the right one.",
	Holds:            "As long as they cannot find it, the others answer 503, and never 404, for what it alone serves; all is well with the right address.",
	Source:           "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): --peer-advertise-ip, --peer-advertise-port; KEP-4020, goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("a", scenario.Setup{Advertise: scenario.AdvertiseWrong})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
