package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var emulatedUpgrade = scenario.Scenario{
	Name: "emulated-upgrade",
	Happens: "Under load, the servers are replaced one after the other by TO, emulating FROM. After a while, they are restarted one after " +
		"the other without emulation.",
	Holds: "While all servers emulate FROM, they all serve the same. Then, as in any upgrade, every server can answer requests for " +
		"everything that some server serves, and all answer discovery alike. FROM may be up to three minor versions older than TO: " +
		"without emulation, two apiservers may differ by only one.",
	Source: "KEP-4330, user stories: upgrading the binary apart from the API (--emulated-version); Kubernetes' version skew policy; " +
		"KEP-4020, motivation",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges", "ConfigurationTakesEffect"},
	Labels:  []string{"conformance", "slow"},
	Control: mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100, MergedDocuments: 180},
		func(plan *scenario.Plan, p scenario.Parameters) {
			plan.Soak(3 * time.Second)
			for _, server := range plan.Names() {
				emulating := &scenario.Setup{EmulatedVersion: scenario.MinorVersion(p.From)}
				plan.Add(scenario.Step{Action: scenario.Replace, Server: server, Version: p.To, Setup: emulating})
				plan.Settle(3 * time.Second)
			}
			plan.Sweep() // while every server runs TO and none serves its API
			plan.Soak(10 * time.Second)
			for i, server := range plan.Names() {
				plan.Restart(server)
				plan.Settle(4 * time.Second)
				if i == 0 {
					plan.Sweep() // while the APIs are mixed
				}
			}
			plan.Sweep()
			plan.Converge()
		}),
}
