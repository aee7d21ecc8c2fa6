package scenarios

import (
	"math"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// widgets is a custom resource with the given versions.
func widgets(versions ...string) scenario.Definition {
	return scenario.Definition{Group: "example.com", Resource: "widgets", Versions: versions}
}

// gauges is an aggregated API with the given versions.
func gauges(versions ...string) scenario.Definition {
	return scenario.Definition{Group: "metrics.example.com", Resource: "gauges", Versions: versions, Aggregated: true}
}

// lifecycle defines something, adds a version, removes the first version, and removes the
// definition. It waits for watch after the two additions and for watchGone after the two removals.
func lifecycle(plan *scenario.Plan, of func(versions ...string) scenario.Definition, watch, watchGone time.Duration) {
	plan.Define(of("v1"))
	plan.Settle(watch)
	plan.Define(of("v1", "v2"))
	plan.Settle(watch)
	plan.Define(of("v2"))
	plan.Settle(watchGone)
	plan.Undefine(of("v2"))
	plan.Settle(watchGone)
}

// The number of servers, counted from the first, that run TO at the start. The others run FROM.
const (
	noneTo     = 0
	firstTo    = 1
	firstTwoTo = 2
	allTo      = math.MaxInt
)

// aFewNodes is the share of a kubelet's requests, in percent, in the scenarios of the smoke set.
const aFewNodes = 2

// pressure is the minimum load for which a verdict counts.
type pressure = history.Pressure

// planned returns the plan of a scenario: the first newer servers run TO, and steps adds the steps.
func planned(newer int, least pressure, steps func(*scenario.Plan, scenario.Parameters)) func(scenario.Parameters) scenario.Plan {
	return func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(func(i int) string {
			if i < newer {
				return p.To
			}
			return p.From
		})
		plan.Pressure = least
		steps(plan, p)
		return *plan
	}
}

// misconfigured returns the plan of scenarios that restart one server with a wrong setup and later
// with the right one. The unreachable argument is the Unreachable pressure. It is above 0 for
// setups that certainly make servers unreachable.
func misconfigured(server string, setup scenario.Setup, unreachable int) func(scenario.Parameters) scenario.Plan {
	least := pressure{Operations: 5000, Skewed: 300, Unreachable: unreachable, PassedOn: 200}
	return planned(firstTo, least, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.SetUp(server, setup)
		plan.Settle(12 * time.Second)
		plan.Restart(server)
		plan.Converge()
	})
}

// gracePeriod is how long upstream remembers a deleted group version of a custom resource or
// aggregated API. During this time upstream does not believe that a peer serves the group version
// (defaultExclusionGracePeriod in k8s.io/apiserver/pkg/util/peerproxy/peerproxy.go).
const gracePeriod = 5 * time.Minute

// forgotten returns the plan of scenarios that define something with two versions. When every
// server knows that the others serve it, the plan removes some or all of it, and then waits until
// the servers forget it.
func forgotten(of func(versions ...string) scenario.Definition, remove func(*scenario.Plan)) func(scenario.Parameters) scenario.Plan {
	return planned(firstTo, pressure{Operations: 5000, Unserved: 100, MergedDocuments: 500}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		plan.Define(of("v1", "v2"))
		plan.Settle(4 * time.Second)
		plan.Restart(plan.Servers[len(plan.Servers)-1].Name)
		plan.Settle(4 * time.Second)
		remove(plan)
		plan.Soak(gracePeriod + 45*time.Second)
		plan.Converge()
	})
}

// cut cuts the link from one server to another.
func cut(from, to string) fault.Fault { return fault.Fault{Kind: fault.Cut, From: from, To: to} }

// from puts the fault on the links from all other servers to the server in its field To.
func from(servers []string, f fault.Fault) []fault.Fault {
	var all []fault.Fault
	for _, s := range servers {
		if s != f.To {
			f.From = s
			all = append(all, f)
		}
	}
	return all
}

// bothWays adds to each fault the same fault in the other direction.
func bothWays(faults []fault.Fault) []fault.Fault {
	all := slices.Clone(faults)
	for _, f := range faults {
		f.From, f.To = f.To, f.From
		all = append(all, f)
	}
	return all
}

// around puts the fault on the links between each server and the next, in both directions. The
// first server comes after the last.
func around(servers []string, f fault.Fault) []fault.Fault {
	var all []fault.Fault
	for i, s := range servers {
		f.From, f.To = s, servers[(i+1)%len(servers)]
		all = append(all, f)
	}
	if len(servers) == 2 {
		return all // the links are already in both directions
	}
	return bothWays(all)
}
