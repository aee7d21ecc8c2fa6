package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var advertisedAddressWrong = scenario.Scenario{
	Name: "advertised-address-wrong",
	Happens: "Only the first server runs TO. It is restarted with an address for its peers at which nothing listens, and then with the " +
		"right one.",
	Holds: "While the others cannot reach it, they answer 503, never 404, for what only it serves. With the right address they answer " +
		"such requests.",
	Source: "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): --peer-advertise-ip, --peer-advertise-port; KEP-4020, goals: " +
		"503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan:             misconfigured("a", scenario.Setup{Advertise: scenario.AdvertiseWrong}, 50),
}

var advertisedAddressHalf = scenario.Scenario{
	Name: "advertised-address-half",
	Happens: "Only the first server runs TO. It is restarted with only --peer-advertise-ip, then with only --peer-advertise-port, both " +
		"wrong, and then with both, correct.",
	Holds: "A server refuses half an address, or ignores it and uses --advertise-address and its own port. While it runs, every other " +
		"server can answer requests for what it serves.",
	Source: "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): if --peer-advertise-ip and --peer-advertise-port are not " +
		"both set, --advertise-address is used",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
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

var advertisedAddressFallback = scenario.Scenario{
	Name: "advertised-address-fallback",
	Happens: "Only the first server runs TO. No server has an address for its peers (--peer-advertise-ip, --peer-advertise-port); each has " +
		"--advertise-address.",
	Holds: "Peers find each other by --advertise-address and the secure port. Every server can answer requests for everything that some " +
		"server serves.",
	Source: "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): without --peer-advertise-ip and --peer-advertise-port the " +
		"address of --advertise-address is used, then that of --bind-address, then the host's own. Here every server listens on all " +
		"addresses (--bind-address=0.0.0.0), so --bind-address is not tested; advertised-address-unroutable tests the host's own",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 200, Unserved: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		for i := range plan.Servers {
			plan.Servers[i].Setup = &scenario.Setup{Advertise: scenario.AdvertiseNothing}
		}
		plan.Settle(10 * time.Second)
		plan.Converge()
	}),
}

var advertisedAddressUnroutable = scenario.Scenario{
	Name: "advertised-address-unroutable",
	Happens: "Only the first server runs TO. It is restarted without any address for its peers; the address that it finds on its own host " +
		"cannot be reached from theirs. Then it gets the right address.",
	Holds: "While the others cannot reach it, they answer 503 within a bounded time, never 404, for what only it serves. With the right " +
		"address they answer such requests.",
	Source: "k8s.io/apiserver, pkg/server/options/serving.go (DefaultExternalAddress): without --advertise-address the address is that of " +
		"--bind-address, or of the host's default interface; KEP-4020, goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan:             misconfigured("a", scenario.Setup{Advertise: scenario.AdvertiseHost}, 50),
}
