package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var advertisedAddressHalf = scenario.Scenario{
	Name: "advertised-address-half",
	Happens: "Only the first server runs TO. It is restarted with only --peer-advertise-ip, then with only --peer-advertise-port, both " +
		"wrong, and then with both, correct.",
	Holds: "A server refuses half an address: it does not run with a flag that has no effect. While it runs, every other server " +
		"can answer requests for resources that it serves.",
	Source: "Kubernetes' documentation of the Mixed Version Proxy: each of the two flags says where peers reach the server. " +
		"k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): if they are not both set, --advertise-address is used",
	About:   []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges", "ConfigurationTakesEffect"},
	Limits:  notOnNodes,
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		for _, half := range []scenario.Advertise{scenario.AdvertiseIP, scenario.AdvertisePort} {
			plan.SetUp("a", scenario.Setup{Advertise: half})
			plan.Settle(6 * time.Second)
		}
		plan.Restart("a")
		plan.Converge()
	}),
}
