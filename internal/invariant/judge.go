package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// Judge gathers the facts of h and judges them. The verdicts do not depend on the order of records,
// and h is not changed.
func Judge(h *history.History) []Verdict { return NewFacts(h).Judge() }

// Judge returns one verdict for each invariant of the catalogue, in its order. It is deterministic.
//
// A name in Run.About that is not in the catalogue gets an inconclusive core verdict at the end.
// Otherwise a misspelt name would silently remove a demand.
func (f *Facts) Judge() []Verdict {
	verdicts, _ := f.judge()
	return verdicts
}

// judge also returns the tallies behind the verdicts. There are none if the run proves nothing.
func (f *Facts) judge() (verdicts []Verdict, tallies []*tally) {
	if f.run.Unjudged != "" {
		verdicts = unjudged(All(), f.run)
	} else {
		verdicts, tallies = judgeBy(All(), f)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(f.run.About))) {
		if !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Name == name }) {
			verdicts = append(verdicts, Verdict{
				Name: name, Grade: GradeCore, Outcome: OutcomeInconclusive, About: true,
				Reason: "this skewproof has no invariant of that name",
			})
		}
	}
	return verdicts, tallies
}

// unjudged returns the verdicts on a run that proves nothing. Such a run may end with faults still
// active. A fault is recorded when it ends, so the history lacks the faults that would excuse a
// violation.
func unjudged(invariants []Invariant, run history.Run) (verdicts []Verdict) {
	for _, i := range invariants {
		verdicts = append(verdicts, Verdict{
			Name: i.Name, Grade: i.Grade, Sentence: i.Sentence, Source: i.Source, Outcome: OutcomeInconclusive,
			Reason: "not judged: " + run.Unjudged, About: slices.Contains(run.About, i.Name),
		})
	}
	return verdicts
}

// judgeBy returns one verdict and one tally for each of the invariants, in their order.
func judgeBy(invariants []Invariant, f *Facts) ([]Verdict, []*tally) {
	tallies := make([]*tally, len(invariants))
	for i, inv := range invariants {
		tallies[i] = inv.judge(f)
	}
	ruled := ruledOn(invariants, tallies)
	verdicts := make([]Verdict, len(invariants))
	for i, inv := range invariants {
		tallies[i].settle(inv, ruled)
		verdicts[i] = inv.verdict(tallies[i])
	}
	return verdicts, tallies
}

// Judge returns the verdict of one invariant alone. The verdict does not say what the invariant
// took out, because other invariants may have ruled on those requests.
func (i Invariant) Judge(f *Facts) Verdict { return i.verdict(i.judge(f)) }

func (i Invariant) verdict(t *tally) Verdict {
	f := t.facts
	v, doubts := t.done()
	v.Name, v.Grade, v.Sentence, v.Source = i.Name, i.Grade, i.Sentence, i.Source
	for j := range v.Evidence {
		v.Evidence[j].Signature.Invariant = i.Name
	}
	v.About, v.Control = slices.Contains(f.run.About, i.Name), slices.Contains(f.run.Control, i.Name)
	if v.About {
		doubts = append(doubts, f.missingPressure(i.pressure)...)
		doubts = append(doubts, f.ineffectiveFaults()...)
		if i.Name != configurationName { // that invariant reports them itself
			doubts = append(doubts, f.unseenSettings()...)
		}
	}
	doubts = append(append(doubts, f.truncation()...), f.impossible.doubts()...)
	switch {
	case v.Violations > 0:
		v.Outcome = OutcomeFail
	case len(doubts) > 0:
		if others := f.run.Unnamed; v.About && len(others) > 0 {
			doubts = append(doubts, "the cluster has servers that the run did not ask: "+strings.Join(others, ", "))
		}
		v.Outcome, v.Reason = OutcomeInconclusive, strings.Join(doubts, "; ")
	case v.Control:
		v.Outcome, v.Unshown = OutcomeInconclusive, true
		v.Reason = "this run is the negative control of its scenario, and must violate " + i.Name +
			". It did not, so it does not show that the scenario can fail"
	default:
		v.Outcome = OutcomePass
	}
	return v
}

// ineffectiveFaults names every fault that had no effect. The run says nothing about such a fault.
func (f *Facts) ineffectiveFaults() []string {
	var out []string
	for _, fault := range f.faultList {
		if !fault.Effective() {
			where := cmp.Or(fault.Server, cmp.Or(fault.From, "all")+"→"+fault.To)
			out = append(out, fmt.Sprintf("fault %d, %s %s, had no effect", fault.ID, fault.Kind, where))
		}
	}
	return out
}

// truncation says why the history does not describe a complete run.
func (f *Facts) truncation() []string {
	switch {
	case !f.end.Complete:
		return []string{"the history has no end record: it is truncated"}
	case f.end.Error != "":
		return []string{EndedEarly(f.end.Error)}
	}
	return nil
}

// EndedEarly says in short why a run ended early: of the lines of a log in the error, only the last
// one. The step shows all of them.
func EndedEarly(why string) string {
	why, log, found := strings.Cut(why, "; last lines of its log:")
	if lines := strings.Split(strings.TrimSpace(log), "\n"); found && log != "" {
		why += "; its last words: " + strings.TrimSpace(lines[len(lines)-1])
	}
	return "the run ended early: " + why
}
