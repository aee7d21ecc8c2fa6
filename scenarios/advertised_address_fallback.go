package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var advertisedAddressFallback = Scenario{
	Name:             "advertised-address-fallback",
	Happens:          "The first server alone runs TO. No server is told an address for its peers: --advertise-address, which each has, is all there is.",
	Holds:            "Everything: peers find each other by --advertise-address and the secure port.",
	Source:           "KEP-4020, proposal: without --peer-advertise-ip and --peer-advertise-port the address of --advertise-address is used",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		for i := range plan.Servers {
			plan.Servers[i].Setup = &Setup{Advertise: AdvertiseNothing}
		}
		plan.settle(10 * time.Second)
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 2000, Skewed: 200, Unserved: 50}
		return *plan
	},
}
