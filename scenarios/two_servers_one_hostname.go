package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var twoServersOneHostname = scenario.Scenario{
	Name:    "two-servers-one-hostname",
	Happens: "The first server alone runs TO. The second is restarted on a host of the same name as the first, so that the two have one identity; then it is given its own.",
	Holds: "Neither takes the other's requests for its own, nobody crashes, and nobody is told 404 for what the first serves; " +
		"all is well once each has a name of its own.",
	Source:           "k8s.io/apiserver, pkg/server/config.go (NewConfig): a server's identity is a hash of its host name; KEP-4020, goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal},
		Reason:   "because it needs servers whose host names can be changed from one start to the next: the simulator tells servers apart by them, and a node of kind keeps its own",
	},
	Control: askedInVain,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("b", scenario.Setup{HostnameOf: "a"})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300}
		return *plan
	},
}
