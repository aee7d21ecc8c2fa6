package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var advertisedAddressUnroutable = scenario.Scenario{
	Name: "advertised-address-unroutable",
	Happens: "Only the first server runs TO. It is restarted without any address for its peers; the address that it finds on its own host " +
		"cannot be reached from theirs. Then it gets the right address.",
	Holds: "While the others cannot reach it, they answer 503 within a bounded time, never 404, for resources that only it " +
		"serves. With the right address they answer such requests.",
	Source: "k8s.io/apiserver, pkg/server/options/serving.go (DefaultExternalAddress): without --advertise-address the address is that of " +
		"--bind-address, or of the host's default interface; KEP-4020, goals: 503, not 404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "ConfigurationTakesEffect"},
	Limits:  notOnNodes,
	Control: outOfReach,
	Plan:    misconfigured("a", scenario.Setup{Advertise: scenario.AdvertiseHost}, 50),
}
