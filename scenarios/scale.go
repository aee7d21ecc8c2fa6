package scenarios

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var manyPeers = scenario.Scenario{
	Name: "many-peers",
	Happens: "Of fifty servers every second one runs TO, the others FROM. At about the same time, two servers cannot reach each other, one " +
		"of the two cannot reach the last server, one server is killed, and one is restarted. When all this is over, one server is " +
		"replaced by TO.",
	Holds:            "What holds for three servers holds for fifty.",
	Source:           "KEP-4020, goals; scalability: every apiserver asks every other one",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers:       50,
	NeedsTwoVersions: true,
	Family:           scenario.Scale,
	Limits:           scenario.Limits{Backends: onlySimulated, Reason: "because it needs fifty servers"},
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(func(i int) string {
			if i%2 == 0 {
				return p.To
			}
			return p.From
		})
		last := plan.Servers[len(plan.Servers)-1].Name
		plan.Settle(5 * time.Second)
		plan.Inject("there", cut("b", "a"))
		plan.Inject("back", cut("a", "b"))
		plan.Inject("another", cut("b", last))
		plan.Kill("c")
		plan.Soak(10 * time.Second)
		plan.Restart("a")
		plan.Settle(10 * time.Second)
		plan.Start("c")
		plan.Heal("another")
		plan.Heal("back")
		plan.Heal("there")
		plan.Replace("b", p.To)
		plan.Converge()
		plan.Pressure = pressure{Operations: 5000, Skewed: 300, Unserved: 100}
		return *plan
	},
}

// manyGroups is the number of groups, each with one custom resource of three versions.
const manyGroups = 100

var manyResources = scenario.Scenario{
	Name: "many-resources",
	Happens: "Versions are mixed. A hundred custom resources are defined at once, each in its own group and with three versions. Every " +
		"third one is deleted again while a server is restarted.",
	Holds:      "What holds for a few resources holds for many: the same document on every server, in the same order.",
	Source:     "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 3,
	Family:     scenario.Scale,
	Limits:     scenario.Limits{Backends: onlySimulated, Reason: "because real servers take minutes to establish so many custom resources"},
	Control:    mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		of := func(i int) scenario.Definition {
			return scenario.Definition{Group: fmt.Sprintf("g%02d.example.com", i), Resource: "widgets", Versions: []string{"v1", "v1beta1", "v1alpha1"}}
		}
		plan.Settle(3 * time.Second)
		for i := range manyGroups {
			plan.Define(of(i))
		}
		plan.Settle(8 * time.Second)
		plan.Sweep()
		for i := 0; i < manyGroups; i += 3 {
			plan.Undefine(of(i))
			if i == manyGroups/2/3*3 {
				plan.Restart("b")
			}
		}
		plan.Converge()
	}),
}

// changesOfADay is the number of disturbances, one every ten minutes.
const changesOfADay = 24

var longCampaign = scenario.Scenario{
	Name: "long-campaign",
	Happens: "For hours, there is a disturbance of a control plane with mixed versions every few minutes: a server is restarted, killed " +
		"and started, or cut off from another one or from etcd, and custom resources are defined and deleted.",
	Holds:            "Nothing degrades over time: what holds in the first minute holds after hours, and at the end everything is right.",
	Source:           "KEP-4020, goals and service level objectives; leases that last an hour, and fetches that are repeated, show only after hours",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Scale,
	Limits:           scenario.Limits{Backends: onlySimulated, Reason: "because it lasts for hours"},
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.SparseTraffic
		plan.Settle(time.Minute)
		for i := range changesOfADay {
			server := plan.Servers[i%len(plan.Servers)].Name
			other := plan.Servers[(i+1)%len(plan.Servers)].Name
			switch i % 6 {
			case 0:
				plan.Restart(server)
			case 1:
				plan.Define(widgets("v1"))
			case 2:
				plan.Kill(server)
				plan.Soak(time.Minute)
				plan.Start(server)
			case 3:
				plan.Inject("servers", cut(other, server))
				plan.Soak(2 * time.Minute)
				plan.Heal("servers")
			case 4:
				plan.Undefine(widgets("v1"))
			case 5:
				plan.Inject("etcd", cut(server, "etcd"))
				plan.Soak(2 * time.Minute)
				plan.Heal("etcd")
			}
			plan.Soak(9 * time.Minute)
		}
		plan.Converge()
	}),
}
