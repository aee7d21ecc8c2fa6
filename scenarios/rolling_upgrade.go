package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var rollingUpgrade = scenario.Scenario{
	Name:    "rolling-upgrade",
	Happens: "Under load, the servers are replaced one after the other by a newer version. Each keeps its address and identity.",
	Holds:   "All the time, every server can answer requests for everything that some server serves, and all answer discovery alike.",
	Source:  "KEP-4020, motivation: garbage collection and namespace deletion misled by 404s during an upgrade",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Upgrades,
	Labels:     []string{"smoke", "conformance"},
	Control:    mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 5000, Unserved: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Soak(3 * time.Second)
		for i, s := range plan.Servers {
			plan.Replace(s.Name, p.To)
			plan.Settle(4 * time.Second)
			if i == 0 {
				plan.Sweep() // while the versions are mixed
			}
		}
		plan.Sweep()
		plan.Converge()
		if p.Mixed() {
			plan.Pressure.Skewed = 300
		}
	}),
}

var canaryUpgrade = scenario.Scenario{
	Name:    "canary-upgrade",
	Happens: "One server is upgraded and runs for longer than leases last and first retries take. Then the others are upgraded.",
	Holds:   "All the time, every server can answer requests for everything that some server serves.",
	Source:  "KEP-4020, motivation: a cluster may run mixed versions for as long as an upgrade is being watched",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     scenario.Upgrades,
	Labels:     []string{"conformance"},
	Control:    mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 4000, Unserved: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Soak(3 * time.Second)
		for i, server := range plan.Names() {
			plan.Replace(server, p.To)
			if i == 0 {
				plan.Settle(35 * time.Second)
				plan.Sweep()
				continue
			}
			plan.Settle(2 * time.Second)
		}
		plan.Converge()
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
	}),
}

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
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Upgrades,
	Labels:           []string{"conformance", "slow"},
	Control:          mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
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

var rollingUpgradeUnderFaults = scenario.Scenario{
	Name: "rolling-upgrade-under-faults",
	Happens: "The servers are upgraded one by one over a bad network: between neighbours every request is delayed by about a tenth of a " +
		"second, responses from the new server to the last one are slow, and after each upgrade the connections from the last server " +
		"to the new one are reset for a while.",
	Holds: "Requests may take longer, and some may fail, but none is answered 404 for what some server serves. Once the network is " +
		"healed everything is right.",
	Source:           "KEP-4020, goals, and risks: a peer that is slow or cannot be reached for a moment",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Upgrades,
	Labels:           []string{"slow"},
	Control:          withoutSteadyState,
	Plan: planned(noneTo, pressure{Operations: 4000, Skewed: 300, Unserved: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		servers := plan.Names()
		last := servers[len(servers)-1]
		plan.Soak(3 * time.Second)
		// No other fault is in the direction of a reset.
		late := plan.Suffer(around(servers, fault.Fault{
			Kind: fault.Latency, Latency: 100 * time.Millisecond, Jitter: 50 * time.Millisecond, Direction: fault.Up,
		})...)
		for i, server := range servers {
			plan.Replace(server, p.To)
			if i == len(servers)-1 {
				break
			}
			reset := plan.Suffer(fault.Fault{Kind: fault.Reset, From: last, To: server, Direction: fault.Down})
			plan.Soak(3 * time.Second)
			reset()
			trickle := plan.Suffer(fault.Fault{Kind: fault.Bandwidth, From: last, To: server, Rate: 200_000, Direction: fault.Down})
			plan.Settle(6 * time.Second)
			trickle()
		}
		plan.Soak(4 * time.Second)
		late()
		plan.Converge()
	}),
}
