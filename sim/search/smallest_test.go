package search

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// In this test several switches differ from the reference. Two of them are needed. One of the
// others has no effect in addition to these two, and one breaks no core invariant.
func TestTheSmallestSetIsWhatIsNeeded(t *testing.T) {
	spec := specOf("reference", 3)
	spec.Changes = []string{"Routing.Subresources=false", "Quirks.TrustAnyHop=true", "Fetching.Together=false", "Routing.Attempts=1"}
	one, err := scenarios.Find("quiet")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := one
	elsewhere.Name, elsewhere.Limits.Backends = "elsewhere", []string{scenario.BackendLocal}
	// In these seeds both switches are needed. In as many from seed 1 on, only one of them is.
	search := func() *reports.Smallest {
		s, err := NewSmallest(spec, "reference", Options{First: 41, Seeds: 40}, []scenario.Scenario{one, elsewhere})
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	found := search()
	var changes []string
	for _, r := range found.Rows {
		changes = append(changes, r.Change)
		if r.Schedules == 0 || len(r.Violated) == 0 {
			t.Errorf("%s is needed for nothing: %+v", r.Change, r)
		}
	}
	if want := []string{"Routing.Subresources=true", "Quirks.TrustAnyHop=false"}; !slices.Equal(changes, want) {
		t.Errorf("%v, want %v", changes, want)
	}
	if found.Scenarios != 1 || !slices.Equal(found.NotRun, []string{"elsewhere"}) || found.Costs.Fetches == 0 || found.Costs.Latency == 0 {
		t.Errorf("%+v", found)
	}
	if a, b := encoded(t, found), encoded(t, search()); a != b {
		t.Errorf("the same search has the results\n%s\nand\n%s", a, b)
	}
	var text bytes.Buffer
	if err := reports.WriteTables(&text, found, reports.SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 of the 4 switches", "Routing.Subresources=true", "NoFalseNotFound (", "all of them", "elsewhere", "Inputs: " + found.Inputs} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &text)
		}
	}
}

func TestASmallestSetThatWasEndedIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := NewSmallest(specOf("upstream-1.37", 3), "reference", Options{Seeds: 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(ctx, func(string) { cancel() })
	if err == nil {
		t.Error("no error")
	}
}

// If tables were made from other policies, schedules or simulated servers than the present ones,
// their figures may be wrong by now.
func TestTheTablesInTheDocumentsAreOfThisCode(t *testing.T) {
	spec := specOf("upstream-1.37", 3)
	now, err := Inputs(spec)
	if err != nil {
		t.Fatal(err)
	}
	for page, command := range map[string]string{
		"ablation.md": "skewproof ablate --seeds 1000", "proposal.md": "skewproof ablate --smallest --seeds 600",
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		made := regexp.MustCompile(`Inputs: ([0-9a-f]{16})\.`).FindSubmatch(content)
		switch {
		case made == nil:
			t.Errorf("docs/%s does not say of which inputs it was made", page)
		case string(made[1]) != now:
			t.Errorf("the table of docs/%s is of inputs %s, which are now %s: make it again with %q", page, made[1], now, command)
		}
	}
}

func TestInputsTellPoliciesAndSchedulesApart(t *testing.T) {
	spec := specOf("upstream-1.37", 3)
	seen := map[string]string{}
	for what, change := range map[string]func(*Spec){
		"as it is": func(*Spec) {}, "a switch": func(s *Spec) { s.Changes = []string{"Quirks.EncodeQuery=false"} }, "servers": func(s *Spec) { s.Servers = 2 },
		"resources": func(s *Spec) { s.Resources = 5 },
	} {
		other := spec
		change(&other)
		inputs, err := Inputs(other)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[inputs]; ok {
			t.Errorf("%s and %s have the same inputs", before, what)
		}
		seen[inputs] = what
	}
	if again, err := Inputs(spec); err != nil || seen[again] != "as it is" {
		t.Errorf("the inputs are %s now, %v", again, err)
	}
}
