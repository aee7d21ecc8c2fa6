// Package parity compares the verdicts of the simulator and of real processes on the same plan. A
// disagreement is a failure unless known.json has it, with the reason.
package parity

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// Compare compares two reports of one plan, invariant by invariant, in the order of the catalogue.
func Compare(local, sim reports.RunReport) ([]reports.Disagreement, error) {
	l, s := local.Metadata, sim.Metadata
	switch {
	case l.Backend != "local" || s.Backend != "sim":
		return nil, fmt.Errorf("compare a run on local with one in sim: these are on %s and in %s", l.Backend, s.Backend)
	case l.Scenario != s.Scenario || l.Subject != s.Subject || l.From != s.From || l.To != s.To || len(local.Servers) != len(sim.Servers):
		return nil, fmt.Errorf("compare two runs of one plan: one is %s, the other %s", describe(local), describe(sim))
	}
	var all []reports.Disagreement
	for _, real := range local.Invariants {
		i := slices.IndexFunc(sim.Invariants, func(i reports.Invariant) bool { return i.Name == real.Name })
		if i < 0 {
			return nil, fmt.Errorf("compare two runs of one plan: that in sim was not judged by %s: judge both with the same skewproof", real.Name)
		}
		if simulated := sim.Invariants[i]; simulated.Outcome != real.Outcome {
			all = append(all, reports.Disagreement{
				Scenario: l.Scenario, Subject: l.Subject, From: l.From, To: l.To, Invariant: real.Name, Local: real.Outcome, Sim: simulated.Outcome,
			})
		}
	}
	return all, nil
}

func describe(r reports.RunReport) string {
	m := r.Metadata
	return fmt.Sprintf("%s, %s, %d servers, %s to %s", m.Scenario, m.Subject, len(r.Servers), m.From, m.To)
}

// Known is a disagreement with its reason. An empty field matches anything, except that an empty
// outcome does not match inconclusive.
type Known struct {
	reports.Disagreement
	// Why says why the backends differ, and why this is not a defect to fix.
	Why string `json:"why"`
}

//go:embed known.json
var known []byte

// All returns the known disagreements, in the order of the file.
var All = sync.OnceValue(func() []Known {
	all, err := decode(known)
	if err != nil { // cannot happen: the file is part of the program, and a test reads it
		panic(err)
	}
	return all
})

func decode(file []byte) ([]Known, error) {
	var all []Known
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("read the known disagreements: %w", err)
	}
	for i, k := range all {
		if k.Scenario == "" || k.Invariant == "" || k.Why == "" {
			return nil, fmt.Errorf("read the known disagreements: number %d lacks its scenario, its invariant or its reason", i+1)
		}
	}
	return all, nil
}

// Explain returns the reason of a disagreement, if it is known.
func Explain(d reports.Disagreement) (why string, ok bool) { return explain(All(), d) }

func explain(all []Known, d reports.Disagreement) (why string, ok bool) {
	for _, k := range all {
		if matches(k.Scenario, d.Scenario) && matches(k.Subject, d.Subject) && matches(k.From, d.From) && matches(k.To, d.To) &&
			k.Invariant == d.Invariant && likewise(k.Local, d.Local) && likewise(k.Sim, d.Sim) {
			return k.Why, true
		}
	}
	return "", false
}

func matches(known, is string) bool { return known == "" || known == is }

func likewise(known, is invariant.Outcome) bool {
	return known == is || known == "" && is != invariant.OutcomeInconclusive
}

// Causes compares the violations in two reports, each as "invariant: asked server: cause". A report
// shows only a few kinds of violations of each invariant, so the result is for people to read, not
// for a verdict.
func Causes(local, sim reports.RunReport) (both, onlyLocal, onlySim []string) {
	real, simulated := causes(local), causes(sim)
	for _, c := range real {
		if slices.Contains(simulated, c) {
			both = append(both, c)
		} else {
			onlyLocal = append(onlyLocal, c)
		}
	}
	for _, c := range simulated {
		if !slices.Contains(real, c) {
			onlySim = append(onlySim, c)
		}
	}
	return both, onlyLocal, onlySim
}

func causes(r reports.RunReport) []string {
	var all []string
	for _, i := range r.Invariants {
		for _, e := range i.Evidence {
			c := i.Name + ": " + e.Asked + ": " + e.Cause
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}
