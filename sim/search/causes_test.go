package search

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// explained returns the findings of a search about one invariant, shrunk, with their causes.
func explained(t *testing.T, spec Spec, invariant string, seeds uint64) []reports.CampaignFinding {
	t.Helper()
	c := explored(t, spec, Options{Seeds: seeds, ShrinkRuns: -1})
	s, err := Explore(spec, Options{Seeds: 1, ShrinkRuns: 300})
	if err != nil {
		t.Fatal(err)
	}
	var all []reports.CampaignFinding
	for _, f := range c.Findings {
		if f.Invariant != invariant {
			continue
		}
		s.shrinkOne(t.Context(), &f)
		if f.Removal == nil {
			t.Fatalf("%s: no cause was looked for", f.ViolationKind)
		}
		if r := reproOf(t, f); r.Removal == nil || r.Removal.Key() != f.Removal.Key() {
			t.Errorf("%s: the repro says %v, the finding %v", f.ViolationKind, r.Removal, f.Removal)
		}
		all = append(all, f)
	}
	return all
}

// The policy is the reference except for some switches. The cause must name exactly these switches.
func TestTheCauseIsWhatWasPlanted(t *testing.T) {
	for name, c := range map[string]struct {
		changes   []string
		invariant string
		seeds     uint64
		want      [][]string
	}{
		"one": {[]string{"Routing.Subresources=false"}, "NoFalseNotFound", 40, [][]string{{"Routing.Subresources=true"}}},
		"one, beside another": {
			[]string{"Routing.Subresources=false", "Routing.Ejection=0s", "Fetching.FirstRetry=5ms"}, "NoFalseNotFound", 40, [][]string{{"Routing.Subresources=true"}},
		},
		"either of two": {
			[]string{"Quirks.TrustAnyHop=true", "Routing.RefuseAtHop=false", "Routing.Ejection=0s"}, "NoFalseNotFound", 40,
			[][]string{{"Routing.RefuseAtHop=true"}, {"Quirks.TrustAnyHop=false"}},
		},
		"both of two": {
			[]string{"Fetching.FirstRetry=16m40s", "Fetching.LastRetry=16m40s", "Fetching.Retries=1", "Fetching.Interval=0s"}, "Converges", 300,
			[][]string{{"Fetching.Interval=3s", "Fetching.FirstRetry=100ms"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf("reference", 3)
			spec.Changes = c.changes
			found := explained(t, spec, c.invariant, c.seeds)
			exactly := func(f reports.CampaignFinding) bool {
				return slices.EqualFunc(f.Removal.Sets, c.want, slices.Equal) && f.Removal.Smallest && f.Removal.Shown >= fewestShown
			}
			if !slices.ContainsFunc(found, exactly) {
				for _, f := range found {
					t.Errorf("%s: %+v, want %v\n%s", f.ViolationKind, f.Removal, c.want, strings.Join(f.Story, "\n"))
				}
			}
		})
	}
}

// No switch removes a violation of the reference, and the cause must say so.
func TestWhatNoSwitchRemoves(t *testing.T) {
	found := explained(t, specOf("reference", 3), "Available", 900)
	if len(found) == 0 {
		t.Fatal("nothing is violated")
	}
	for _, f := range found {
		if len(f.Removal.Sets) > 0 || f.Removal.Unknown == "" && !strings.Contains(f.Removal.String(), "No switch of the policy removes this") {
			t.Errorf("%s: %s", f.ViolationKind, f.Removal)
		}
	}
}

// A search for a cause that was interrupted must give no cause.
func TestACauseThatWasNotFoundIsUnknown(t *testing.T) {
	spec := specOf("reference", 3)
	spec.Changes = []string{"Routing.Subresources=false"}
	f := explained(t, spec, "NoFalseNotFound", 40)[0]
	r := reproOf(t, f)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, do := range map[string]func() (*reports.Removal, error){
		"few runs": func() (*reports.Removal, error) {
			return Removal(t.Context(), r.Spec, r.Case, r.records(), f, nil, nearSchedules+2)
		},
		"no time": func() (*reports.Removal, error) {
			return Removal(ended, r.Spec, r.Case, r.records(), f, nil, DefaultCauseRuns)
		},
	} {
		removal, err := do()
		if err != nil || len(removal.Sets) > 0 || removal.Unknown == "" || removal.Key() != "" {
			t.Errorf("%s: %+v, %v", what, removal, err)
		}
	}
	off := r.Spec
	off.Policy, off.Changes = None, nil
	if removal, err := Removal(t.Context(), off, r.Case, r.records(), f, nil, 100); err != nil || removal.Unknown == "" {
		t.Errorf("the feature off: %+v, %v", removal, err)
	}
}

// A repro with an impossible cause must be refused.
func TestAReproWithAnImpossibleCauseIsRefused(t *testing.T) {
	for what, removal := range map[string]*reports.Removal{
		"an unknown switch":   {To: "reference", Sets: [][]string{{"Knowledge.Nothing=true"}}},
		"an empty set":        {To: "reference", Sets: [][]string{{}}},
		"two sizes":           {To: "reference", Sets: [][]string{{"Routing.Attempts=3"}, {"Routing.Attempts=3", "Routing.Ejection=5s"}}},
		"both":                {To: "reference", Sets: [][]string{{"Routing.Attempts=3"}}, Unknown: "no time"},
		"more than there are": {To: "reference", Schedules: 1, Shown: 2},
	} {
		r := sample(t)
		r.Removal = removal
		body, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decoded(body); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
