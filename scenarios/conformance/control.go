package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// control is a scenario that is run on what it must fail on.
type control struct {
	scenario.Scenario
	backend string
	words   []string
	limit   time.Duration
}

// controls are the control runs of a suite, in the order of the catalogue, and the scenarios that have none, with the reason.
func (o *Options) controls() (runs []control, unproven []reports.Unproven) {
	for _, s := range o.chosen() {
		if !s.Limits.Allows(o.Backend) {
			continue // it is skipped, so there is nothing to prove
		}
		plan := s.Plan(o.parameters(s))
		c := control{Scenario: s, backend: o.Backend, limit: Patience(plan)}
		on := *o
		on.Subject, on.Strict = s.Control.Subject, false
		if o.Backend == scenario.BackendExisting {
			if plan.OnlyReads() != nil {
				continue
			}
			// Servers that are somebody else's cannot be made worse. The simulator shows that the same plan, load and invariants can fail.
			c.backend = scenario.BackendSim
			on = Options{Backend: c.backend, Subject: s.Control.Subject, onlyReads: true}
		}
		c.words = on.words(s)
		switch {
		case s.Control.Subject == "" && s.Control.Defect == "":
			unproven = append(unproven, reports.Unproven{Scenario: s.Name, Reason: "the catalogue names nothing that it must fail on"})
		case s.Control.Subject == "":
			unproven = append(unproven, reports.Unproven{
				Scenario: s.Name,
				Reason:   fmt.Sprintf("it must fail on the planted defect %q, which only the simulator's own tests plant ('make mutants')", s.Control.Defect),
			})
		case !s.Limits.Allows(c.backend):
			unproven = append(unproven, reports.Unproven{Scenario: s.Name, Reason: "it does not run on " + c.backend + ": " + s.Limits.Reason})
		default:
			runs = append(runs, c)
		}
	}
	if o.Controls != ControlsFew {
		return runs, unproven
	}
	few := quickest(runs)
	for _, c := range runs {
		if !slices.ContainsFunc(few, func(f control) bool { return f.Name == c.Name }) {
			unproven = append(unproven, reports.Unproven{Scenario: c.Name, Reason: "only a few control runs were asked for"})
		}
	}
	return few, unproven
}

// aim is what a control run is to show.
type aim struct{ subject, invariant string }

// aims are what one control run is to show.
func (c *control) aims() (all []aim) {
	for _, invariant := range c.Control.Invariants {
		all = append(all, aim{c.Control.Subject, invariant})
	}
	return all
}

// quickest are, for each invariant that is to be violated and each subject, the run that takes the least time, in the order of runs. One run may
// be that for many of them.
func quickest(runs []control) []control {
	shown, best := map[aim]bool{}, map[string]bool{}
	for _, c := range slices.SortedStableFunc(slices.Values(runs), func(a, b control) int { return cmp.Compare(a.limit, b.limit) }) {
		for _, a := range c.aims() {
			if !shown[a] {
				shown[a], best[c.Name] = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(runs), func(c control) bool { return !best[c.Name] })
}
