package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var advertisedAddressHalf = scenario.Scenario{
	Name: "advertised-address-half",
	Happens: "The first server alone runs TO. It is restarted with --peer-advertise-ip alone, then with --peer-advertise-port alone, each leading nowhere, " +
		"and then with both, as it should be.",
	Holds: "Half an address is refused, or left aside for --advertise-address with the server's own port: what the server serves can be had from " +
		"every other as long as it runs.",
	Source:           "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): if --peer-advertise-ip and --peer-advertise-port are not both set, --advertise-address is used",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		for _, half := range []scenario.Advertise{scenario.AdvertiseIP, scenario.AdvertisePort} {
			plan.SetUp("a", scenario.Setup{Advertise: half})
			plan.Settle(6 * time.Second)
		}
		plan.Restart("a")
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300}
		return *plan
	},
}
