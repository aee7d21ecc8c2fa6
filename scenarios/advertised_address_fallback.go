package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var advertisedAddressFallback = scenario.Scenario{
	Name:    "advertised-address-fallback",
	Happens: "The first server alone runs TO. No server is told an address for its peers: --advertise-address, which each has, is all there is.",
	Holds:   "Peers find each other by --advertise-address and the secure port, and what some server serves can be had from every server.",
	Source: "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): without --peer-advertise-ip and --peer-advertise-port the address of --advertise-address is used, then that of --bind-address, then the " +
		"host's own. Every server here listens on all addresses (--bind-address=0.0.0.0), so the step of an address to listen on is not taken; the last one is, " +
		"in advertised-address-unroutable",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		for i := range plan.Servers {
			plan.Servers[i].Setup = &scenario.Setup{Advertise: scenario.AdvertiseNothing}
		}
		plan.Settle(10 * time.Second)
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 2000, Skewed: 200, Unserved: 50}
		return *plan
	},
}
