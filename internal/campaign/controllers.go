package campaign

import (
	"math/rand/v2"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The objects on which controllers act in a schedule. The owners of the first are deleted, and the
// namespace of the second.
var (
	owned = scenario.Objects{Name: "campaign-owned", Dependents: 2}
	whole = scenario.Objects{Name: "campaign-whole", Dependents: 1}
)

// control lets controllers run during a schedule. They get objects as soon as the servers differ,
// lose some of them during later waits, and are started again now and then. At the end they have as
// long as the invariants allow. The faults of the schedule may make these steps impossible, so none
// of them ends the schedule. The seed alone decides. Only real servers have controllers, so the
// generator that the simulator shares knows none.
//
// version must not be newer than any server, by Kubernetes' version skew policy.
func control(p *scenario.Plan, seed uint64, version string) {
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
		{Action: scenario.DeleteOwners, Objects: &owned, Optional: true, Propagation: scenario.Propagations[choices.IntN(len(scenario.Propagations))]},
		{Action: scenario.DeleteNamespace, Objects: &whole, Optional: true},
	}
	if choices.IntN(2) == 0 {
		changes = append(changes, start)
	}
	at := map[int][]scenario.Step{ends: {{Action: scenario.CollectObjects, For: history.DefaultBounds.Collection, Optional: true}}}
	for _, change := range changes {
		i := begins + choices.IntN(ends-begins+1)
		at[i] = slices.Insert(at[i], 0, change)
	}
	at[begins] = append(create, at[begins]...)
	var steps []scenario.Step
	for i := range len(p.Steps) + 1 {
		steps = append(steps, at[i]...)
		if i < len(p.Steps) {
			steps = append(steps, p.Steps[i])
		}
	}
	p.Steps = steps
	p.Bounds.Collection = history.DefaultBounds.Collection
}

// skewed returns the index of the first step before which servers of two versions run and the load
// has run for a while; -1 if there is none.
func skewed(p scenario.Plan) int {
	versions := map[string]string{}
	for _, s := range p.Servers {
		versions[s.Name] = s.Version
	}
	for i, s := range p.Steps {
		if s.Server != "" && s.Version != "" {
			versions[s.Server] = s.Version
		}
		waits := s.Action == scenario.Converge || s.Action == scenario.Soak
		if waits && i+1 < len(p.Steps) && slices.ContainsFunc(p.Servers, func(o scenario.Server) bool { return versions[o.Name] != versions[p.Servers[0].Name] }) {
			return i + 1
		}
	}
	return -1
}
