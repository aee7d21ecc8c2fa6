package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var advertisedAddressHalf = Scenario{
	Name: "advertised-address-half",
	Happens: "The first server alone runs TO. It is restarted with --peer-advertise-ip alone, then with --peer-advertise-port alone, each leading nowhere, " +
		"and then with both, as it should be.",
	Holds: "Half an address is refused, or left aside for --advertise-address with the server's own port: what the server serves can be had from " +
		"every other as long as it runs.",
	Source:           "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): if --peer-advertise-ip and --peer-advertise-port are not both set, --advertise-address is used",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(4 * time.Second)
		for _, half := range []Advertise{AdvertiseIP, AdvertisePort} {
			plan.setUp("a", Setup{Advertise: half})
			plan.settle(6 * time.Second)
		}
		plan.restart("a")
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300}
		return *plan
	},
}
