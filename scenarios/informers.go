package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var informers = scenario.Scenario{
	Name: "informers",
	Happens: "Only the first server runs TO. Informers, by which every controller learns what exists, ask every server and a load balancer for " +
		"kinds that only the first serves, and for one that all serve. Objects are created, deleted and collected by controllers while a " +
		"server that the informers ask crashes, another one is upgraded, and the first, which alone served these kinds before, crashes.",
	Holds: "Every informer gets each change once and in order, whichever server passes it on and whichever takes over. In the end it has " +
		"what is in etcd.",
	Source:     "KEP-4020, goals: a request is handled by an apiserver that can serve it; controllers live by lists and watches",
	About:      []string{"NoLostEvents"},
	MinServers: 3,
	Labels:     []string{"slow"},
	Limits:     withControllers,
	Control:    scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NoLostEvents"}},
	Plan: planned(firstTo, pressureOfInformers, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Informers = true
		first, second, third := watched("first"), watched("second"), watched("third")
		plan.StartControllers(p.From, "")
		plan.Settle(2 * time.Second)
		plan.CreateObjects(first)
		plan.Soak(5 * time.Second)
		plan.Kill("b")
		plan.CreateObjects(second)
		plan.DeleteOwners(first, scenario.Background)
		plan.Start("b")
		plan.Settle(5 * time.Second)
		plan.Replace("c", p.To)
		plan.Settle(5 * time.Second)
		plan.DeleteOwners(second, scenario.Background)
		plan.Kill("a")
		plan.CreateObjects(third)
		plan.Soak(10 * time.Second)
		plan.Start("a")
		plan.Settle(5 * time.Second)
		plan.DeleteOwners(third, scenario.Background)
		plan.ConvergeAfter(reflectorsWait)
	}),
}

var pressureOfInformers = pressure{Operations: 1000, Events: 6}

// informing lets informers follow objects that are created and deleted.
var informing = task{
	prepare: func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Informers = true
		plan.StartControllers(p.From, "")
		plan.Settle(2 * time.Second)
		plan.CreateObjects(watched("before"))
		plan.Soak(5 * time.Second)
	},
	act: func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.CreateObjects(watched("meanwhile"))
		plan.DeleteOwners(watched("before"), scenario.Background)
	},
	finish: func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(5 * time.Second)
		plan.DeleteOwners(watched("meanwhile"), scenario.Background)
		plan.ConvergeAfter(reflectorsWait)
	},
}

// reflectorsWait is the longest wait of a client-go reflector before it lists or watches again.
const reflectorsWait = time.Minute

// watched returns the objects whose events informers must receive.
func watched(name string) scenario.Objects { return scenario.Objects{Name: name, Dependents: 5} }
