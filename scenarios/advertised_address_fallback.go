package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var advertisedAddressFallback = scenario.Scenario{
	Name: "advertised-address-fallback",
	Happens: "Only the first server runs TO. No server has an address for its peers (--peer-advertise-ip, --peer-advertise-port); each has " +
		"--advertise-address.",
	Holds: "Peers find each other by --advertise-address and the secure port. Every server can answer requests for everything that some " +
		"server serves.",
	Source: "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): without --peer-advertise-ip and --peer-advertise-port the " +
		"address of --advertise-address is used, then that of --bind-address, then the host's own. Here every server listens on all " +
		"addresses (--bind-address=0.0.0.0), so --bind-address is not tested; advertised-address-unroutable tests the host's own",
	About: []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoLoop", "NoCrash",
		"Converges", "ConfigurationTakesEffect"},
	Labels:  []string{"conformance"},
	Limits:  notOnNodes,
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 200, Unserved: 50, MergedDocuments: 45},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			for i := range plan.Servers {
				plan.Servers[i].Setup = &scenario.Setup{Advertise: scenario.AdvertiseNothing}
			}
			plan.Settle(10 * time.Second)
			plan.Converge()
		}),
}
