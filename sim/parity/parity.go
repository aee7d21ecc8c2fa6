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

// Disagreement is an invariant for which the two backends have different outcomes.
type Disagreement struct {
	// Scenario, Subject, From and To are those of both runs.
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	From     string `json:"from"`
	To       string `json:"to"`
	// Invariant is the name of the invariant.
	Invariant string `json:"invariant"`
	// Local is the outcome on real processes, and Sim is the outcome in the simulator.
	Local invariant.Outcome `json:"local"`
	Sim   invariant.Outcome `json:"sim"`
}

// String describes the disagreement in a line.
func (d Disagreement) String() string {
	return fmt.Sprintf("%s, %s, %s to %s: %s is %s on real processes, and %s in the simulator",
		d.Scenario, d.Subject, d.From, d.To, d.Invariant, d.Local, d.Sim)
}

// Compare compares two reports of one plan, invariant by invariant, in the order of the catalogue.
func Compare(local, sim reports.RunReport) ([]Disagreement, error) {
	l, s := local.Metadata, sim.Metadata
	switch {
	case l.Backend != "local" || s.Backend != "sim":
		return nil, fmt.Errorf("compare a run on local with one in sim: these are on %s and in %s", l.Backend, s.Backend)
	case l.Scenario != s.Scenario || l.Subject != s.Subject || l.From != s.From || l.To != s.To || len(local.Servers) != len(sim.Servers):
		return nil, fmt.Errorf("compare two runs of one plan: one is %s, the other %s", describe(local), describe(sim))
	}
	var all []Disagreement
	for _, real := range local.Invariants {
		i := slices.IndexFunc(sim.Invariants, func(i reports.Invariant) bool { return i.Name == real.Name })
		if i < 0 {
			return nil, fmt.Errorf("compare two runs of one plan: that in sim was not judged by %s: judge both with the same skewproof", real.Name)
		}
		if simulated := sim.Invariants[i]; simulated.Outcome != real.Outcome {
			all = append(all, Disagreement{
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
	Disagreement
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
func Explain(d Disagreement) (why string, ok bool) { return explain(All(), d) }

func explain(all []Known, d Disagreement) (why string, ok bool) {
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
