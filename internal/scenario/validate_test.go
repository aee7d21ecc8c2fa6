package scenario

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
)

func TestValidateRefuses(t *testing.T) {
	a := []Server{{Name: "a", Version: "v1.36.3"}}
	two := []Server{{Name: "a", Version: "v1.36.3"}, {Name: "b", Version: "v1.36.3"}}
	on := func(actions ...Action) Plan {
		plan := Plan{Servers: a}
		for _, action := range actions {
			plan.Add(Step{Action: action, Server: "a", Version: "v1.37.1"})
		}
		return plan
	}
	inject := func(f fault.Fault) Plan { return Plan{Servers: two, Steps: []Step{{Action: Inject, Fault: &f}}} }
	for name, c := range map[string]struct {
		plan Plan
		want string
	}{
		"no server":               {Plan{}, "no server"},
		"a server twice":          {Plan{Servers: append(a, a...)}, "listed twice"},
		"a stranger":              {Plan{Servers: a, Steps: []Step{{Action: Kill, Server: "z"}}}, `step 1: kill: no server "z"`},
		"a server without a name": {Plan{Servers: a, Steps: []Step{{Action: Start}}}, `step 1: start: no server ""`},
		"an unknown action":       {Plan{Servers: a, Steps: []Step{{Action: "dance"}}}, `unknown action "dance"`},
		"a soak of no time":       {Plan{Servers: a, Steps: []Step{{Action: Soak}}}, "positive time"},
		"a time of no length":     {Plan{Servers: a, Steps: []Step{{Action: Outlast}}}, "positive time"},
		"a heal of nothing":       {Plan{Servers: a, Steps: []Step{{Action: Heal, Label: "x"}}}, "no such fault"},
		"a replace with nothing":  {Plan{Servers: a, Steps: []Step{{Action: Replace, Server: "a"}}}, "no version"},

		"broken discovery of no document": {Plan{Servers: a, Steps: []Step{{Action: BreakDiscovery, Server: "a", Path: "/openapi"}}}, "want /api or /apis"},
		"an unknown failure":              {Plan{Servers: a, Steps: []Step{{Action: BreakDiscovery, Server: "a", Path: "/api", Failure: "slowly"}}}, `failure "slowly": want one of`},
		"a failure of a restore":          {Plan{Servers: a, Steps: []Step{{Action: RestoreDiscovery, Server: "a", Path: "/api", Failure: fault.CutShort}}}, "only broken discovery"},
		"a failure of a soak":             {Plan{Servers: a, Steps: []Step{{Action: Soak, For: 1, Failure: fault.CutShort}}}, "only broken discovery"},
		"an inject of nothing":            {Plan{Servers: a, Steps: []Step{{Action: Inject}}}, "no fault given"},
		"a fault that is wrong":           {inject(fault.Fault{Kind: "cat", From: "a", To: "b"}), "unknown kind"},
		"a label twice":                   {Plan{Servers: two, Steps: []Step{cutStep("a", "b"), cutStep("b", "a")}}, "step 2: inject \"\": that label is on"},
		"a fault from a stranger":         {inject(cut("z", "a")), `from: no server "z"`},
		"a fault to a stranger":           {inject(cut("a", "z")), `to: no server "z"`},
		"a fault from etcd":               {inject(cut(fault.Etcd, "a")), `from: no server "etcd"`},
		"a fault to the client":           {inject(cut("a", fault.Client)), `to: no server "client"`},
		"a fault of no link":              {inject(cut(fault.Client, fault.Etcd)), "there is no such link"},
		"a fault from any server":         {inject(cut(fault.Any, "a")), "a step is about one link"},
		"a fault to any server":           {inject(cut("a", fault.Any)), "a step is about one link"},

		"stop after stop":        {on(Stop, Stop), "step 2: stop a: it does not run: start it first"},
		"restart after stop":     {on(Stop, Restart), "step 2: restart a: it does not run: start it first"},
		"replace after kill":     {on(Kill, Replace), "step 2: replace a: it does not run: start it first"},
		"kill after kill":        {on(Kill, Kill), "step 2: kill a: it does not run: start it first"},
		"pause after stop":       {on(Stop, Pause), "step 2: pause a: it does not run: start it first"},
		"resume after kill":      {on(Pause, Kill, Resume), "step 3: resume a: it is not paused"},
		"stop while paused":      {on(Pause, Stop), "step 2: stop a: it is paused: resume it first"},
		"restart while paused":   {on(Pause, Restart), "step 2: restart a: it is paused: resume it first"},
		"replace while paused":   {on(Pause, Replace), "step 2: replace a: it is paused: resume it first"},
		"pause while paused":     {on(Pause, Pause), "step 2: pause a: it is paused already"},
		"start while running":    {on(Start), "step 1: start a: it has not ended"},
		"start after a restart":  {on(Stop, Start, Restart, Start), "step 4: start a: it has not ended"},
		"start while paused":     {on(Pause, Start), "step 2: start a: it has not ended"},
		"resume while running":   {on(Resume), "step 1: resume a: it is not paused"},
		"resume after a resume":  {on(Pause, Resume, Resume), "step 3: resume a: it is not paused"},
		"what came before stays": {on(Stop, Start, Pause, Resume, Kill, Stop), "step 6: stop a"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.plan.Validate()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error about %q", err, c.want)
			}
		})
	}
}

// cut returns a fault that cuts the link between two ends.
func cut(from, to string) fault.Fault { return fault.Fault{Kind: fault.Cut, From: from, To: to} }

func cutStep(from, to string) Step {
	f := cut(from, to)
	return Step{Action: Inject, Fault: &f}
}

func TestValidateAccepts(t *testing.T) {
	plan := Plan{Servers: []Server{{Name: "a", Version: "v1.36.3"}, {Name: "b", Version: "v1.36.3"}}}
	for i, link := range [][2]string{{"a", "b"}, {fault.Client, "a"}, {"b", fault.Etcd}} {
		plan.Inject(link[0]+link[1], cut(link[0], link[1]))
		if i > 0 {
			plan.Heal(link[0] + link[1])
			plan.Inject(link[0]+link[1], cut(link[0], link[1]))
		}
	}
	for _, action := range []Action{Stop, Start, Kill, Start, Pause, Resume, Restart, Replace, Pause, Kill, Start, Stop} {
		plan.Add(Step{Action: action, Server: "a", Version: "v1.37.1"})
	}
	plan.Restart("b") // whether or not a still runs
	if err := plan.Validate(); err != nil {
		t.Error(err)
	}
}
