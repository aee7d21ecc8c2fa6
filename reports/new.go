package reports

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Options is what a report needs beside the history and the verdicts.
type Options struct {
	// Version is the version of skewproof that writes the report.
	Version string
	// Strict makes invariants beyond the KEP count like the core ones. The zero value shows them without counting them.
	Strict bool
}

// New makes the report of a run from its history and the verdicts on it. It is a pure function: it reads no clock and
// changes neither argument. The records may stand in any order; the report has them in time order.
func New(h *history.History, verdicts []invariant.Verdict, opts Options) RunReport {
	end := runEnd(h)
	facts := invariant.NewFacts(h)
	r := RunReport{
		APIVersion: APIVersion,
		Kind:       Kind,
		Metadata: Metadata{
			Scenario: h.Run.Scenario, Sentence: h.Run.Sentence, Backend: h.Run.Backend, Subject: h.Run.Subject,
			From: h.Run.From, To: h.Run.To, Seed: h.Run.Seed, RequestsPerSecond: h.Run.QPS,
			StartedAt: h.Run.StartedAt.UTC(), DurationSeconds: seconds(end), Operations: len(h.Operations),
			Complete: h.End.Complete, Error: h.End.Error, SkewproofVersion: opts.Version,
		},
		Invariants:  newInvariants(verdicts),
		Steps:       newSteps(h, end),
		Faults:      newFaults(h, end),
		Effects:     newEffects(h, end),
		Counts:      newCounts(facts),
		Reproduce:   h.Run.Reproduce,
		Environment: h.Run.Environment,
	}
	r.Timeline = newTimeline(h, facts, end, r.Faults, r.Invariants)
	r.Servers = newServers(h, r.Timeline.Lanes)
	r.Verdict = Verdict{Outcome: invariant.Overall(verdicts, opts.Strict), Strict: opts.Strict}
	for _, i := range r.Invariants {
		switch i.Verdict {
		case invariant.OutcomeFail:
			r.Verdict.Failed = append(r.Verdict.Failed, i.Name)
		case invariant.OutcomeInconclusive:
			r.Verdict.Inconclusive = append(r.Verdict.Inconclusive, i.Name)
		}
	}
	r.Verdict.Sentence = headline(r)
	return r
}

// inOrder returns the records in time order and leaves the list as it is.
func inOrder[R any](records []R, at func(R) history.Time) []R {
	return slices.SortedStableFunc(slices.Values(records), func(a, b R) int { return cmp.Compare(at(a), at(b)) })
}

func newInvariants(verdicts []invariant.Verdict) []Invariant {
	out := []Invariant{}
	for _, v := range verdicts {
		i := Invariant{
			Name: v.Invariant, Grade: v.Grade, Verdict: v.Outcome, About: v.About, Sentence: v.Sentence, Source: v.Source,
			Checked: v.Checked, Unjudgeable: v.Unjudgeable, Overloaded: v.Overloaded, Violations: v.Violations, Reason: v.Reason, Kinds: v.Kinds,
		}
		for _, f := range v.Facts {
			i.Facts = append(i.Facts, Fact(f))
		}
		for _, e := range v.Evidence {
			i.Evidence = append(i.Evidence, newEvidence(e))
		}
		out = append(out, i)
	}
	return out
}
