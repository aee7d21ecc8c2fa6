package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var emulatedUpgrade = Scenario{
	Name: "emulated-upgrade",
	Happens: "Under load, the servers are replaced one after the other by TO, each told to behave like FROM still. When all are, and that has been watched, they are " +
		"restarted one after the other as what they are.",
	Holds: "While all behave like FROM, whatever they are, what one serves all serve; then, as in any upgrade, what some server serves can be had from every server, and all " +
		"of them describe it alike. FROM may be up to three minor versions older: two apiservers without emulation may differ by one.",
	Source: "KEP-4330, user stories: upgrading the binary apart from the API (--emulated-version); Kubernetes' version skew policy; KEP-4020, motivation",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Upgrades,
	Labels:           []string{"conformance", "slow"},
	Control:          mixedForAWhile,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(func(int) string { return p.From })
		plan.soak(3 * time.Second)
		for _, server := range plan.names() {
			plan.add(Step{Action: Replace, Server: server, Version: p.To, Setup: &Setup{EmulatedVersion: minorVersion(p.From)}})
			plan.settle(3 * time.Second)
		}
		plan.sweep() // while every server is TO, and none serves its API
		plan.soak(10 * time.Second)
		for i, server := range plan.names() {
			plan.restart(server)
			plan.settle(4 * time.Second)
			if i == 0 {
				plan.sweep() // while the APIs are mixed
			}
		}
		plan.sweep()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unserved: 100}
		return *plan
	},
}
