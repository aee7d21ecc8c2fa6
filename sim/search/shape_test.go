package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

func threeVersions() Spec {
	return Spec{Policy: "reference", From: "v1.35.4", To: newer, Versions: []string{"v1.35.4", older, newer}, Resources: 6}
}

// Every number of servers, every version on every server, and every setting that differs by server
// must occur.
func TestEveryShapeComesUp(t *testing.T) {
	g := generator(t, threeVersions())
	servers, starts, becomes, drawn := map[int]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	const seeds = 6000
	for seed := range uint64(seeds) {
		c, _ := g.Case(seed)
		if err := c.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		servers[len(c.Servers)]++
		for _, s := range c.Servers {
			starts[s.Name+" "+release.Of(s.Version)]++
			if s.Version != release.Of(s.Version) {
				starts["in part"]++
			}
			if s.Setup != nil {
				drawn["first"]++
			}
		}
		for _, s := range c.Steps {
			if s.Version != "" {
				becomes[s.Server+" "+release.Of(s.Version)]++
			}
			if s.Setup != nil {
				drawn[s.Setup.String()]++
				if s.Setup.EmulatedVersion != "" {
					drawn["emulates"]++
				}
			}
		}
	}
	for n := 1; n <= mostDrawn; n++ {
		if servers[n] < seeds/50 {
			t.Errorf("%d servers: %d times in %d cases", n, servers[n], seeds)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		for _, v := range threeVersions().Versions {
			if starts[name+" "+v] < seeds/100 || becomes[name+" "+v] < seeds/100 {
				t.Errorf("%s begins as %s %d times and becomes it %d times in %d cases", name, v, starts[name+" "+v], becomes[name+" "+v], seeds)
			}
		}
	}
	if starts["in part"] == 0 || drawn["first"] == 0 || drawn["emulates"] == 0 {
		t.Errorf("in part %d, set up from the first start %d, emulating %d: want each in %d cases", starts["in part"], drawn["first"], drawn["emulates"], seeds)
	}
	for i := range setups {
		if s := setups[i].String(); drawn[s] == 0 {
			t.Errorf("%s: never in %d cases", s, seeds)
		}
	}
}

// The definitions must concern resources in which the versions differ.
func TestDefinitionsAreDrawnFromTheSkew(t *testing.T) {
	g := generator(t, specOf("reference", 3))
	for _, want := range []string{
		"storagemigration.k8s.io", // only the newer has v1
		"storage.k8s.io",          // only the older has v1beta1
	} {
		if !slices.ContainsFunc(g.definitions, func(d scenario.Definition) bool { return d.Group == want }) {
			t.Errorf("no definition in %s", want)
		}
	}
	drawn := map[*scenario.Definition]int{}
	const seeds = 6000
	for seed := range uint64(seeds) {
		c, _ := g.Case(seed)
		for _, s := range c.Steps {
			if s.Action == scenario.Define {
				drawn[s.Definition]++
			}
		}
	}
	for i := range g.definitions {
		if drawn[&g.definitions[i]] == 0 {
			t.Errorf("%s: never in %d cases", g.definitions[i], seeds)
		}
		if d := g.definitions[i]; !strings.Contains(d.Group, ".") {
			t.Errorf("%s: no server takes a definition in this group", d)
		}
	}
}

// A wrong configuration must be corrected before everything must be right.
func TestWrongConfigurationsAreHealed(t *testing.T) {
	g := generator(t, specOf("reference", 3))
	for seed := range uint64(3000) {
		c, _ := g.Case(seed)
		state := scenario.NewState(c.Servers)
		for _, s := range c.Steps {
			if err := state.Apply(s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for _, s := range c.Servers {
			setup := state.Setup(s.Name)
			if kind, _ := setup.Wrong(); state.Runs(s.Name) && (kind != "" || setup.Refusable()) {
				t.Fatalf("seed %d: at the end %s still has %s", seed, s.Name, setup)
			}
		}
	}
}
