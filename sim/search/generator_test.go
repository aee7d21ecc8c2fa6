package search

import (
	"encoding/json"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/tape"
)

const (
	older = "v1.36.3"
	newer = "v1.37.1"
)

func specOf(policy string, servers int) Spec {
	return Spec{Policy: policy, From: older, To: newer, Servers: servers, Resources: 6}
}

func generator(t testing.TB, spec Spec) *Generator {
	t.Helper()
	g, err := NewGenerator(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEveryCaseCanBeCarriedOut(t *testing.T) {
	for _, servers := range []int{1, 2, 3, 7, 100} {
		spec := specOf("reference", servers)
		spec.Resources, spec.Requests = servers%7, 5*servers
		g := generator(t, spec)
		for seed := range uint64(2000) {
			c, _ := g.Case(seed)
			if err := c.Validate(); err != nil {
				t.Fatalf("%d servers, seed %d: %v", servers, seed, err)
			}
			if len(c.Requests) != spec.Requests {
				t.Fatalf("%d servers, seed %d: %d requests, want %d", servers, seed, len(c.Requests), spec.Requests)
			}
		}
	}
}

// Memory that is reused for the next case must not change that case.
func TestACaseDependsOnItsSeedAlone(t *testing.T) {
	spec := specOf("reference", 3)
	g := generator(t, spec)
	for seed := range uint64(300) {
		g.Case(seed * 7919) // another case in between
		c, drawn := g.Case(seed)
		again, other := generator(t, spec).Case(seed)
		a, _ := json.Marshal(c)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Fatalf("seed %d is\n%s\nand\n%s", seed, a, b)
		}
		if drawn.Choose(tape.Delays, 1000) != other.Choose(tape.Delays, 1000) {
			t.Fatalf("seed %d has two tapes", seed)
		}
	}
	upstream := generator(t, specOf("upstream-1.37", 3))
	a, _ := g.Case(1)
	b, _ := upstream.Case(1)
	if x, y := encoded(t, a), encoded(t, b); x != y {
		t.Errorf("the policy changes the case:\n%s\n%s", x, y)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A swarm without some kind of step would search only a part of the space.
func TestAllShapesComeUp(t *testing.T) {
	g := generator(t, specOf("reference", 3))
	actions, faults, verbs := map[scenario.Action]int{}, map[string]int{}, map[string]int{}
	settled, quiet, upgrades, forged, subresources, drains := 0, 0, 0, 0, 0, 0
	const seeds = 3000
	for seed := range uint64(seeds) {
		c, _ := g.Case(seed)
		disturbing, replaced := 0, map[string]bool{}
		for i, s := range c.Steps {
			actions[s.Action]++
			if s.Fault != nil {
				faults[string(s.Fault.Kind)]++
			}
			if s.Action == scenario.BreakDiscovery {
				faults["discovery "+string(s.Failure)]++
				if i > 0 && c.Steps[i-1].Action == s.Action && c.Steps[i-1].Server != s.Server {
					faults["discovery of several servers"]++
				}
			}
			if s.Action == scenario.Replace {
				replaced[s.Server] = true
			}
			if s.Action == scenario.Stop && i > 1 && c.Steps[i-2].Server == s.Server && c.Steps[i-2].Setup.Drain() > 0 {
				drains++
			}
			if s.Disturbs() {
				disturbing++
			}
		}
		for _, r := range c.Requests {
			verbs[r.Verb]++
			if r.Forged != "" {
				forged++
			}
			if r.Subresource != "" {
				subresources++
			}
		}
		if c.Settled {
			settled++
		}
		if disturbing == 0 {
			quiet++
		}
		if len(replaced) == 3 {
			upgrades++
		}
	}
	for _, a := range []scenario.Action{
		scenario.Soak, scenario.Outlast, scenario.Start, scenario.Stop, scenario.Kill, scenario.Pause, scenario.Resume, scenario.Restart,
		scenario.Replace, scenario.Inject, scenario.Heal, scenario.Define, scenario.Undefine, scenario.BreakDiscovery, scenario.RestoreDiscovery,
		scenario.DeleteLease, scenario.CompactEtcd, scenario.DefragmentEtcd,
	} {
		if actions[a] < seeds/100 {
			t.Errorf("%s: %d times in %d cases", a, actions[a], seeds)
		}
	}
	for _, k := range []string{"cut", "timeout", "latency", "reset", "limit-data", "bandwidth", "slicer", "slow-close",
		"discovery ", "discovery breaks-off", "discovery cut-short", "discovery of several servers"} {
		if faults[k] < seeds/100 {
			t.Errorf("fault %s: %d times in %d cases", k, faults[k], seeds)
		}
	}
	for _, v := range []string{"get", "list", "table", "watch", "create", "update", "patch", "delete", "deletecollection", "discovery"} {
		if verbs[v] < seeds/10 {
			t.Errorf("verb %s: %d times in %d cases", v, verbs[v], seeds)
		}
	}
	for what, n := range map[string]int{"cold": seeds - settled, "quiet": quiet, "whole upgrades": upgrades, "forged": forged, "subresources": subresources,
		"stops with a shutdown delay": drains} {
		if n == 0 {
			t.Errorf("%s: never in %d cases", what, seeds)
		}
	}
}

// On a tape of zeros, nothing happens to the control plane.
func TestZeroIsHealthy(t *testing.T) {
	g := generator(t, specOf("reference", 3))
	g.tape = &tape.Tape{}
	g.draw()
	for _, s := range g.c.Steps {
		if s.Disturbs() {
			t.Errorf("%s", s)
		}
	}
	if !g.c.Settled || g.c.Servers[0].Version != newer || g.c.Servers[1].Version != older {
		t.Errorf("it begins with %+v, settled %t", g.c.Servers, g.c.Settled)
	}
}

func TestWhatCannotBeSearchedIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"negative servers": func(s *Spec) { s.Servers = -1 }, "too many servers": func(s *Spec) { s.Servers = 101 }, "negative": func(s *Spec) { s.Resources = -1 },
		"one version": func(s *Spec) { s.Versions = []string{older} }, "other ends": func(s *Spec) { s.Versions = []string{older, older, newer, newer} },
		"versions that are not from and to": func(s *Spec) { s.Versions = []string{"v1.35.4", newer} },
		"requests":                          func(s *Spec) { s.Requests = -1 }, "version": func(s *Spec) { s.To = "v9.9.9" },
	} {
		spec := specOf("reference", 3)
		change(&spec)
		if _, err := NewGenerator(spec); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	g := generator(b, specOf("reference", 3))
	seed := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		seed++
		g.Case(seed)
	}
}
