package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var advertisedAddressWrong = scenario.Scenario{
	Name: "advertised-address-wrong",
	Happens: "Only the first server runs TO. It is restarted with an address for its peers at which nothing listens, and then with the " +
		"right one.",
	Holds: "While the others cannot reach it, they answer 503, never 404, for resources that only it serves. With the right " +
		"address they answer such requests.",
	Source: "k8s.io/kubernetes, pkg/controlplane/apiserver (getPeerAddress): --peer-advertise-ip, --peer-advertise-port; KEP-4020, goals: " +
		"503, not 404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "ConfigurationTakesEffect"},
	Labels:  []string{"conformance"},
	Limits:  notOnNodes,
	Control: outOfReach,
	Plan:    misconfigured("a", scenario.Setup{Advertise: scenario.AdvertiseWrong}, 50),
}
