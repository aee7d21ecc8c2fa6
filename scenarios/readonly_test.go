package scenarios

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// docs/conformance.md lists the scenarios that only read and so can run on an existing cluster.
func TestTheseScenariosOnlyRead(t *testing.T) {
	want := []string{"quiet", "nopeer-profile", "preferred-versions", "openapi", "watch-through-proxy", "subresources"}
	var got []string
	for _, s := range All() {
		p := parameters(max(3, s.MinServers), "v1.36.3", "v1.37.1")
		whole := s.Plan(p)
		p.ReadOnly = true
		plan := s.Plan(p)
		if err := plan.Validate(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if plan.OnlyReads() != nil {
			if !cmp.Equal(plan, whole) {
				t.Errorf("%s leaves something out, and changes things all the same", s.Name)
			}
			continue
		}
		if plan.Pressure != whole.Pressure || plan.Traffic != whole.Traffic {
			t.Errorf("%s asks for other pressure or traffic where it only reads", s.Name)
		}
		if !s.Limits.Allows(scenario.BackendExisting) {
			t.Errorf("%s only reads, and may not be carried out where nothing else is allowed: %s", s.Name, s.Limits.Reason)
		}
		got = append(got, s.Name)
	}
	page, err := os.ReadFile("../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range got {
		if !strings.Contains(string(page), "\n  | `"+name+"` |") {
			t.Errorf("docs/conformance.md has no line for %s among those that can run on servers that skewproof did not start", name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("these only read: %v, want %v", got, want)
	}
}

func TestWhatIsSomebodyElsesIsOnlyRead(t *testing.T) {
	servers := []scenario.Server{{Name: "a", Version: "v1.37.1"}}
	for name, c := range map[string]struct {
		plan    scenario.Plan
		refused string
	}{
		"nothing is done":       {scenario.Plan{Servers: servers, Steps: []scenario.Step{{Action: scenario.Soak, For: time.Second}, {Action: scenario.Sweep}, {Action: scenario.Outlast, For: time.Second}}}, ""},
		"a restart":             {scenario.Plan{Servers: servers, Steps: []scenario.Step{{Action: scenario.Restart, Server: "a"}}}, "step 1, restart a"},
		"a fault":               {scenario.Plan{Servers: servers, Steps: []scenario.Step{{Action: scenario.Sweep}, {Action: scenario.Inject, Fault: &fault.Fault{Kind: fault.Cut, From: "a", To: "b"}}}}, "step 2"},
		"a definition":          {scenario.Plan{Servers: servers, Steps: []scenario.Step{{Action: scenario.Define, Definition: &scenario.Definition{Group: "example.com", Resource: "widgets"}}}}, "step 1"},
		"a configuration":       {scenario.Plan{Servers: []scenario.Server{{Name: "a", Setup: &scenario.Setup{Proxy: scenario.Off}}}}, "server a has to be configured"},
		"traffic that connects": {scenario.Plan{Servers: servers, Traffic: scenario.UpgradeTraffic}, "more than reading"},
		"traffic that writes":   {scenario.Plan{Servers: servers, Traffic: scenario.LargeListTraffic}, "more than reading"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.plan.OnlyReads()
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error %v, want one that says %q", err, c.refused)
			}
		})
	}
}
