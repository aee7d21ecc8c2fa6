package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var twoServersOneHostname = scenario.Scenario{
	Name: "two-servers-one-hostname",
	Happens: "Only the first server runs TO. The second is restarted on a host with the same name as the first, so that both have the same " +
		"identity. Then it gets a name of its own.",
	Holds: "Neither server takes the other's requests for its own, no server crashes, and no request is answered 404 for " +
		"resources that the first serves. Once each has its own name everything is right again.",
	Source: "k8s.io/apiserver, pkg/server/config.go (NewConfig): a server's identity is a hash of its host name; KEP-4020, goals: 503, " +
		"not 404",
	About:      []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal},
		Reason: "because it changes the host name of a server: the simulator identifies servers by their host names, and a kind node keeps its " +
			"own",
	},
	Control: withoutSteadyState,
	Plan:    misconfigured("b", scenario.Setup{HostnameOf: "a"}, 0),
}
