package replay

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The printed file compiles, and its plan is the plan of the file.
func TestAsScenario(t *testing.T) {
	r := repro([]scenario.Step{
		{Action: scenario.Inject, Label: "slow", Fault: &fault.Fault{Kind: fault.Latency, From: "b", To: "a", Latency: 1500 * time.Millisecond, Jitter: time.Millisecond, Direction: fault.Up}},
		soaking(2 * time.Minute), {Action: scenario.Replace, Server: "b", Version: "v1.37.1"}, {Action: scenario.Replace, Server: "c", Version: "v1.35.4"},
		{Action: scenario.Define, Definition: &scenario.Definition{Group: "stable.example.com", Resource: "widgets", Versions: []string{"v1", "v2"}}},
		{Action: scenario.BreakDiscovery, Server: "a", Path: "/apis", Failure: fault.CutShort},
		{Action: scenario.Restart, Server: "a", Setup: &scenario.Setup{PeerCA: scenario.TrustStranger}},
	})
	r.Spec.From, r.Spec.To, r.Invariant, r.Seed = "v1.36.3", "v1.37.1", "NoFalseNotFound", 7
	p := planOf(&r.Case, Brisk)
	p.Traffic = scenario.WatchTraffic
	printed, err := AsScenario("slow-and-strange", r, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove("testdata") })   // unless it has content
	dir, err := os.MkdirTemp("testdata", "scenario-") // only code inside the module may import internal packages
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := bytes.Replace(printed, []byte("package scenarios\n"), []byte("package main\n"), 1)
	show := `package main

import (
	"encoding/json"
	"os"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

func main() {
	_ = json.NewEncoder(os.Stdout).Encode(slowAndStrange.Plan(scenario.Parameters{Servers: 3, From: "v1.36.3", To: "v1.37.1", Bounds: history.DefaultBounds}))
}
`
	for name, content := range map[string][]byte{"scenario.go": program, "main.go": []byte(show)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := exec.Command("go", "run", "./"+dir).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	var plan scenario.Plan
	if err := json.Unmarshal(got, &plan); err != nil {
		t.Fatal(err)
	}
	want := p.Plan
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("the plan of the printed scenario (-want +got):\n%s\n%s", diff, printed)
	}
	for _, part := range []string{"p.From", "p.To", `"v1.35.4"`, `"slow-and-strange"`} {
		if !strings.Contains(string(printed), part) {
			t.Errorf("%s is not in the file:\n%s", part, printed)
		}
	}
}

func TestAScenarioNeedsAName(t *testing.T) {
	r := repro(nil)
	for _, name := range []string{"", "Upper", "a--b", "1st", "func", "under_score!"} {
		if _, err := AsScenario(name, r, planOf(&r.Case, Brisk)); err == nil {
			t.Errorf("%q was taken as a name", name)
		}
	}
}
