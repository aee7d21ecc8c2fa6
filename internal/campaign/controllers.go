package campaign

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The objects on which controllers act in a schedule. The owners of the first are deleted, and the
// namespace of the second.
var (
	owned = scenario.Objects{Name: "campaign-owned", Dependents: 2}
	whole = scenario.Objects{Name: "campaign-whole", Dependents: 1}
	// skewedFields has one workload, and is in a few schedules.
	skewedFields = scenario.Objects{Name: "campaign-fields"}
)

// withFields is the share of schedules that have a workload with a field by which versions differ:
// one in this number. Such a workload may never settle, which costs time and teaches little else.
const withFields = 8

// collection is how long controllers may take after the last disturbance. It is longer than in
// scenarios, because controllers that were kept from their servers wait before they try again:
// reflectors up to a minute, and the garbage collector about as long as it has failed.
const collection = 90 * time.Second

// control lets controllers run during a schedule. They get objects as soon as the servers differ,
// lose some of them between later steps, and in half of the schedules they are started again. At
// the end they have as long as the invariants allow. The faults of the schedule may make these
// steps impossible, so none of them ends the schedule. The seed alone decides. Only real servers
// have controllers, so the generator that the simulator shares knows none.
//
// version must not be newer than any server, by Kubernetes' version skew policy. A few schedules
// have one of the workloads, between two steps.
func control(p *scenario.Plan, seed uint64, version string, workloads []scenario.Workload) {
	choices := rand.New(rand.NewPCG(seed, 1))
	through := ""
	if i := choices.IntN(len(p.Servers) + 1); i > 0 { // 0 is the load balancer
		through = p.Servers[i-1].Name
	}
	begins := skewed(*p)
	if begins < 0 {
		return
	}
	start := scenario.Step{Action: scenario.StartControllers, Version: version, Server: through, Optional: true}
	create := []scenario.Step{start}
	for _, o := range []scenario.Objects{owned, whole} {
		create = append(create, scenario.Step{Action: scenario.CreateObjects, Objects: &o, Optional: true})
	}
	ends := len(p.Steps)
	if p.Steps[ends-1].Action == scenario.Converge {
		ends--
	}
	changes := []scenario.Step{
		{
			Action: scenario.DeleteOwners, Objects: &owned, Optional: true,
			Propagation: scenario.Propagations[choices.IntN(len(scenario.Propagations))],
		},
		{Action: scenario.DeleteNamespace, Objects: &whole, Optional: true},
	}
	if choices.IntN(2) == 0 {
		changes = append(changes, start)
	}
	at := map[int][]scenario.Step{ends: {{Action: scenario.CollectObjects, For: collection, Optional: true}}}
	for _, change := range changes {
		i := begins + choices.IntN(ends-begins+1)
		at[i] = slices.Insert(at[i], 0, change)
	}
	at[begins] = append(create, at[begins]...)
	if i := choices.IntN(ends-begins+1) + begins; choices.IntN(withFields) == 0 && i < ends {
		o := skewedFields
		o.Workloads = []scenario.Workload{workloads[choices.IntN(len(workloads))]}
		at[i] = append(at[i], scenario.Step{Action: scenario.CreateObjects, Objects: &o, Optional: true, Server: p.Servers[choices.IntN(len(p.Servers))].Name})
		at[i+1] = slices.Insert(at[i+1], 0, scenario.Step{Action: scenario.DeleteNamespace, Objects: &o, Optional: true})
	}
	var steps []scenario.Step
	for i := range len(p.Steps) + 1 {
		steps = append(steps, at[i]...)
		if i < len(p.Steps) {
			steps = append(steps, p.Steps[i])
		}
	}
	p.Steps = steps
	p.Bounds.Collection = collection
}

// controllersWorked reports whether the garbage collector was at work in a schedule, and objects
// for it existed.
func controllersWorked(h *history.History) bool {
	return slices.ContainsFunc(h.Objects, func(o history.Object) bool { return o.Namespace == owned.Name && len(o.Owners) > 0 }) &&
		slices.ContainsFunc(h.Requests, func(q history.Request) bool { return strings.HasSuffix(q.User, ":generic-garbage-collector") })
}

// skewed returns the index of the first step before which servers of two versions run and the load
// has run for a while; -1 if there is none.
func skewed(p scenario.Plan) int {
	state := scenario.NewState(p.Servers)
	for i, s := range p.Steps {
		if state.Apply(s) != nil {
			return -1 // [scenario.Plan.Validate] says why
		}
		versions := map[string]bool{}
		for _, version := range state.Versions() {
			versions[version] = true
		}
		waits := s.Action == scenario.Converge || s.Action == scenario.Soak
		if waits && len(versions) > 1 && i+1 < len(p.Steps) {
			return i + 1
		}
	}
	return -1
}
