package scenarios

import (
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

// lifecycle defines something, adds a version, removes the first one, and removes the definition.
// It waits after each change, for watchGone after those that remove something.
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

// misconfigured is the plan of scenarios that restart one server with a wrong setup. unreachable is
// the pressure of that name, for setups that make servers unreachable for certain.
func misconfigured(server string, setup scenario.Setup, unreachable int) func(scenario.Parameters) scenario.Plan {
	return func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure(server, setup)
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: unreachable}
		return *plan
	}
}

// cut cuts the link from one server to another.
func cut(from, to string) fault.Fault { return fault.Fault{Kind: fault.Cut, From: from, To: to} }

// from puts the fault on the links from all other servers to the server that it names in To.
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
		return all // these are both directions already
	}
	return bothWays(all)
}
