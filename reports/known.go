package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports/findings"
)

// Known names the finding that explains a violation.
type Known struct {
	// Finding is its number, Title what it is called (docs/findings.md).
	Finding int    `json:"finding"`
	Title   string `json:"title,omitempty"`
	// shownBy is how many scenarios show it: what shows everywhere tells least.
	shownBy int
}

// Label is "NEW", or says which finding explains the violations; "" if nobody has asked.
func (e Evidence) Label() string {
	switch {
	case e.New:
		return "NEW"
	case e.Known != nil:
		return fmt.Sprintf("known (finding %d)", e.Known.Finding)
	default:
		return ""
	}
}

// explain looks up which finding explains which violations. What is NEW comes first in the evidence
// of every invariant, then what the fewest scenarios show.
// If known is nil, nothing is explained, and nothing is NEW.
func (i *Invariant) explain(known findings.Catalogue) {
	if known == nil {
		return
	}
	i.New = i.Violations
	for n := range i.Evidence {
		e := &i.Evidence[n]
		f, ok := known.Explain(e.Signature)
		if e.New = !ok; e.New {
			continue
		}
		e.Known = &Known{f.Number, f.Title, len(f.Scenarios)}
		i.New -= e.Count
		if !slices.Contains(i.Findings, f.Number) {
			i.Findings = append(i.Findings, f.Number)
		}
	}
	slices.Sort(i.Findings)
	slices.SortStableFunc(i.Evidence, func(a, b Evidence) int { return cmp.Compare(a.commonness(), b.commonness()) })
}

// Unexplained are the kinds of violations that are NEW. cut is how many kinds more there are, of
// which the report has no evidence.
func (r RunReport) Unexplained() (seen []findings.Seen, cut int) {
	for _, i := range r.Invariants {
		for _, e := range i.Evidence {
			if e.New {
				seen = append(seen, findings.Seen{
					Signature: e.Signature, Grade: i.Grade, Sentence: e.Sentence,
					Scenario: r.Metadata.Scenario, From: r.Metadata.From, To: r.Metadata.To, Reproduce: r.Reproduce,
				})
			}
		}
		cut += max(0, i.Kinds-len(i.Evidence))
	}
	return seen, cut
}

// mostTold is how many kinds of violations of one invariant a reader is told in full.
const mostTold = 8

// told returns the evidence that a reader is told in full, and the rest. A finding is told once:
// its circumstances differ, and its cause does not.
func (i Invariant) told() (told, listed []Evidence) {
	findings := map[int]bool{}
	for _, e := range i.Evidence {
		again := e.Known != nil && findings[e.Known.Finding]
		if again || len(told) == mostTold {
			listed = append(listed, e)
			continue
		}
		if e.Known != nil {
			findings[e.Known.Finding] = true
		}
		told = append(told, e)
	}
	return told, listed
}

// commonness is 0 for what is NEW, and else how many scenarios show its finding, plus one.
func (e Evidence) commonness() int {
	if e.Known == nil {
		return 0
	}
	return 1 + e.Known.shownBy
}

// Accounted says how many of the violations are known, by finding, and how many are NEW: "91 times:
// 43 NEW, 48 known (finding 2)". If nobody has asked, it is the number of times alone.
func (i Invariant) Accounted() string {
	if i.New > 0 && len(i.Findings) == 0 {
		return times(i.Violations) + ", NEW"
	}
	var parts []string
	if i.New > 0 {
		parts = append(parts, grouped(i.New)+" NEW")
	}
	for _, f := range i.Findings {
		n := 0
		for _, e := range i.Evidence {
			if e.Known != nil && e.Known.Finding == f {
				n += e.Count
			}
		}
		parts = append(parts, fmt.Sprintf("%s known (finding %d)", grouped(n), f))
	}
	if len(parts) == 0 {
		return times(i.Violations)
	}
	return times(i.Violations) + ": " + strings.Join(parts, ", ")
}

// account adds up what is known and what is NEW among the invariants that count.
func (r *RunReport) account() {
	for _, i := range r.Invariants {
		if i.Outcome != invariant.OutcomeFail || !r.Decides(i) {
			continue
		}
		r.Verdict.New += i.New
		for _, f := range i.Findings {
			if !slices.Contains(r.Verdict.Findings, f) {
				r.Verdict.Findings = append(r.Verdict.Findings, f)
			}
		}
	}
	slices.Sort(r.Verdict.Findings)
}

// miss looks for findings that the run should have shown, and did not.
func (r *RunReport) miss(known findings.Catalogue) {
	if !r.Metadata.Complete || r.Metadata.Error != "" || r.Metadata.From == r.Metadata.To {
		return
	}
	for _, f := range known.Expected(r.Metadata.Scenario, r.Metadata.Backend) {
		shown, tested := false, false
		for _, i := range r.Invariants {
			shown = shown || slices.Contains(i.Findings, f.Number)
			tested = tested || i.Outcome != invariant.OutcomeInconclusive && slices.ContainsFunc(f.Matches, func(m findings.Match) bool {
				return slices.Contains(m.Invariants, i.Name)
			})
		}
		if tested && !shown {
			r.Verdict.Missing = append(r.Verdict.Missing, Known{Finding: f.Number, Title: f.Title})
		}
	}
}

// OnlyKnown reports whether the run failed, and findings explain every violation that counts.
func (r RunReport) OnlyKnown() bool {
	return r.Verdict.Outcome == invariant.OutcomeFail && r.Verdict.New == 0 && len(r.Verdict.Findings) > 0
}

// onlyKnown reports the same of one invariant.
func (i Invariant) onlyKnown() bool {
	return i.Outcome == invariant.OutcomeFail && i.New == 0 && len(i.Findings) > 0
}

// OnlyKnown reports whether the suite failed, findings explain every violation that counts, and
// nothing else keeps it from passing.
func (c ConformanceReport) OnlyKnown() bool {
	if c.Result != ResultFailed || !c.Metadata.Complete || c.Control.Result != ResultPassed {
		return false
	}
	return !slices.ContainsFunc(c.Scenarios, func(s ConformanceScenario) bool {
		return s.Core.bad() || c.Metadata.Strict && s.Extended.bad()
	})
}

// OnlyKnown reports whether the matrix failed, and findings explain every violation of what the KEP
// demands. The negative control must fail all the same.
func (m VersionMatrix) OnlyKnown() bool {
	if m.Result != ResultFailed || !m.Metadata.Complete {
		return false
	}
	return !slices.ContainsFunc(m.Cells, func(c MatrixCell) bool {
		if c.MustFail {
			return c.Core.Result != ResultFailed
		}
		return c.Core.bad()
	})
}

// OnlyKnown reports whether the search failed, findings explain everything that counts, and the
// search could be trusted to its end.
func (c *Campaign) OnlyKnown() bool {
	if c.Verdict.Outcome != invariant.OutcomeFail || !c.Complete || c.Checks.Differed+c.Checks.Wrong > 0 || len(c.Troubles) > 0 {
		return false
	}
	return !slices.ContainsFunc(c.Findings, func(f CampaignFinding) bool { return f.Finding == 0 && c.Decides(f.Grade) })
}

// bad reports whether the result keeps a suite from passing although known failures do not.
func (p ProfileResult) bad() bool {
	return p.Result == ResultInconclusive || p.Result == ResultFailed && !p.OnlyKnown
}

// attribution says what of a failure is known, for the end of the headline; "" if nothing is.
func (r RunReport) attribution() string {
	if len(r.Verdict.Findings) == 0 {
		if r.Verdict.New > 0 {
			return " No finding explains it: it is NEW."
		}
		return ""
	}
	var numbers []string
	for _, f := range r.Verdict.Findings {
		numbers = append(numbers, fmt.Sprint(f))
	}
	noun := "finding "
	if len(numbers) > 1 {
		noun = "findings "
	}
	if r.Verdict.New == 0 {
		return " All violations are known: " + noun + conjunction(numbers) + "."
	}
	are := "are"
	if r.Verdict.New == 1 {
		are = "is"
	}
	return fmt.Sprintf(" %s %s NEW; the others are known: %s%s.", counted(r.Verdict.New, "violation"), are, noun, conjunction(numbers))
}

// Attribution says in short what explains the violations of a profile: "NEW: 3; findings 2, 7"; ""
// if nothing was violated, or nobody has asked.
func (p ProfileResult) Attribution() string {
	var words []string
	if p.New > 0 {
		words = append(words, "NEW: "+grouped(p.New))
	}
	if len(p.Findings) > 0 {
		words = append(words, p.FindingWords())
	}
	return strings.Join(words, "; ")
}

// FindingWords names the findings: "finding 2", "findings 2, 7".
func (p ProfileResult) FindingWords() string {
	words := make([]string, len(p.Findings))
	for i, n := range p.Findings {
		words[i] = fmt.Sprint(n)
	}
	if len(words) == 1 {
		return "finding " + words[0]
	}
	return "findings " + strings.Join(words, ", ")
}

// newFirst orders what is NEW before what is known, and that before the rest. Else the order stays.
func newFirst[T any](all []T, core func(T) ProfileResult) []T {
	rank := func(x T) int {
		switch p := core(x); {
		case p.New > 0:
			return 0
		case p.Result == ResultFailed && !p.OnlyKnown:
			return 1
		case p.Result == ResultFailed:
			return 2
		}
		return 3
	}
	return slices.SortedStableFunc(slices.Values(all), func(x, y T) int { return cmp.Compare(rank(x), rank(y)) })
}

// NewFirst are the scenarios, those with NEW violations first, then those that failed otherwise.
func (c ConformanceReport) NewFirst() []ConformanceScenario {
	return newFirst(c.Scenarios, func(s ConformanceScenario) ProfileResult { return s.Core })
}

// attributionOf is the attribution of a headline about the invariant. If the invariant does not
// count, it says so, since what counts is known or NEW for itself.
func (r RunReport) attributionOf(i Invariant) string {
	if r.Decides(i) {
		return r.attribution()
	}
	beyond := " This is beyond the KEP"
	if known := i.Evidence[0].Known; known != nil { // of the evidence that the headline tells
		beyond += fmt.Sprintf(" (finding %d)", known.Finding)
	}
	return beyond + "; the KEP is violated too." + r.attribution()
}
