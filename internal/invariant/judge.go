package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// pressure is one field of history.Pressure.
type pressure struct {
	what string
	of   func(history.Pressure) int
}

var (
	operations  = pressure{"answered operations", func(p history.Pressure) int { return p.Operations }}
	skewed      = pressure{"skewed operations", func(p history.Pressure) int { return p.Skewed }}
	unreachable = pressure{"operations whose every capable server was out of reach", func(p history.Pressure) int { return p.Unreachable }}
	unserved    = pressure{"operations on resources that nobody serves", func(p history.Pressure) int { return p.Unserved }}
)

// Judge returns one verdict for each invariant of the catalogue, in its order. It is deterministic, does not depend on
// the order of records and does not change h.
//
// A run that is about an invariant which the catalogue lacks gets an inconclusive core verdict of that name at the
// end: a misspelt name must not turn into a run that is about nothing.
func Judge(h *history.History) []Verdict {
	f := NewFacts(h)
	var verdicts []Verdict
	for _, inv := range All() {
		verdicts = append(verdicts, inv.Judge(f))
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(h.Run.About))) {
		if !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Invariant == name }) {
			verdicts = append(verdicts, Verdict{
				Invariant: name, Grade: GradeCore, Outcome: OutcomeInconclusive, About: true,
				Reason: "this skewproof has no invariant of that name",
			})
		}
	}
	return verdicts
}

// Judge returns the verdict of one invariant.
func (i Invariant) Judge(f *Facts) Verdict {
	v, doubts := i.judge(f).done()
	v.Invariant, v.Grade, v.Sentence, v.Source = i.Name, i.Grade, i.Sentence, i.Source
	v.About = slices.Contains(f.run.About, i.Name)
	if v.About {
		doubts = append(doubts, f.lacking(i.pressure)...)
		doubts = append(doubts, f.toothless()...)
	}
	doubts = append(doubts, f.cutShort()...)
	switch {
	case v.Violations > 0:
		v.Outcome = OutcomeFail
	case len(doubts) > 0:
		v.Outcome, v.Reason = OutcomeInconclusive, strings.Join(doubts, "; ")
	default:
		v.Outcome = OutcomePass
	}
	return v
}

// lacking names every pressure that was not reached.
func (f *Facts) lacking(ps []pressure) []string {
	var out []string
	for _, p := range append([]pressure{operations}, ps...) {
		if got, least := p.of(f.pressure), p.of(f.run.Pressure); got < least {
			out = append(out, fmt.Sprintf("too little pressure: %d of at least %d %s", got, least, p.what))
		}
	}
	return out
}

// toothless names every fault that touched nothing: what was survived was not that fault.
func (f *Facts) toothless() []string {
	var out []string
	for _, fault := range f.faultList {
		if !fault.Bit() {
			where := fault.Server
			if where == "" {
				where = cmp.Or(fault.From, "all") + "→" + fault.To
			}
			out = append(out, fmt.Sprintf("fault %d, %s %s, touched nothing", fault.ID, fault.Kind, where))
		}
	}
	return out
}

// cutShort says why the history is not that of a whole run.
func (f *Facts) cutShort() []string {
	switch {
	case !f.end.Complete:
		return []string{"the history has no end record: it was cut short"}
	case f.end.Error != "":
		why, _, _ := strings.Cut(f.end.Error, "; last lines of its log:") // they stand with the step, and need not with every verdict
		return []string{"the run ended early: " + why}
	}
	return nil
}

// Overall is what all verdicts together come to. Any failed core invariant fails the run, whatever the scenario is about.
// Otherwise the run is inconclusive when a core invariant that it is about is, or one that the machine was too slow for, or when nothing passed. With strict,
// extended invariants count like core ones.
func Overall(vs []Verdict, strict bool) Outcome {
	overall := OutcomeInconclusive
	undecided := false
	for _, v := range vs {
		if v.Grade != GradeCore && !strict {
			continue
		}
		switch v.Outcome {
		case OutcomeFail:
			return OutcomeFail
		case OutcomePass:
			overall = OutcomePass
		case OutcomeInconclusive:
			undecided = undecided || v.About || v.Strained > 0
		}
	}
	if undecided {
		return OutcomeInconclusive
	}
	return overall
}
