package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports/findings"
)

// Known names the finding that explains a violation.
type Known struct {
	// Finding is the number of the finding. Title is its title (docs/findings.md).
	Finding int    `json:"finding"`
	Title   string `json:"title,omitempty"`
	// shownBy is how many scenarios show the finding. A finding that all scenarios show says least.
	// Still less says one that no proxy can prevent.
	shownBy int
}

// Label is "NEW", or names the finding that explains the violations. It is "" if findings were not
// consulted.
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

// explain finds out which finding explains which violations. In the evidence of every invariant,
// NEW violations come first, then those that the fewest scenarios show. If known is nil, nothing is
// explained, and nothing is NEW. Nothing is NEW without any proxy either, because there it is no
// surprise that requests fail.
func (i *Invariant) explain(known findings.Catalogue, subject string) {
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
		if f.Class == findings.ClassVersionSkew {
			e.Known.shownBy = math.MaxInt32
		}
		i.New -= e.Count
		if !slices.Contains(i.Findings, f.Number) {
			i.Findings = append(i.Findings, f.Number)
		}
	}
	if subject == subjectNone && i.New > 0 {
		i.New, i.Findings = 0, nil
		for n := range i.Evidence {
			i.Evidence[n].New, i.Evidence[n].Known = false, nil
		}
	}
	slices.Sort(i.Findings)
	slices.SortStableFunc(i.Evidence, func(a, b Evidence) int { return cmp.Compare(a.commonness(), b.commonness()) })
}

// Unexplained returns the kinds of violations that are NEW. cut is how many more kinds exist for
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

// mostTold is how many kinds of violations of one invariant the report describes in full.
const mostTold = 8

// told returns the evidence that the report describes in full, and the rest. It describes a finding
// only once, because its circumstances differ but its cause does not.
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

// commonness is 0 for NEW violations. Otherwise it is the number of scenarios that show the
// finding, plus one.
func (e Evidence) commonness() int {
	if e.Known == nil {
		return 0
	}
	return 1 + e.Known.shownBy
}

// Accounted says how many of the violations are known, by finding, and how many are NEW: "91 times:
// 43 NEW, 48 known (finding 2)". If findings were not consulted, it gives only the number of times.
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

// account sums the known and the NEW violations of the invariants that count.
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

// miss looks for findings that the run should have shown but did not.
func (r *RunReport) miss(known findings.Catalogue) {
	if !r.Metadata.Complete || r.Metadata.Error != "" || r.Metadata.From == r.Metadata.To {
		return
	}
	for _, f := range known.Expected(r.Metadata.Scenario, r.Metadata.Subject, r.Metadata.Backend) {
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

// attributed ends a headline with how much of the violations is known. about is the finding that
// the headline describes; nil for none. The sentence stays as it is if findings were not consulted.
func (r RunReport) attributed(sentence string, about *Known) string {
	v := r.Verdict
	explained := findingsNamed(v.Findings)
	switch {
	case explained == "" && v.New == 0, r.Metadata.Subject == subjectNone && v.Outcome == invariant.OutcomeFail:
		return sentence
	case explained == "":
		return sentence + " No finding explains it: it is NEW."
	case v.New == 0 && about != nil && len(v.Findings) > 1:
		others := slices.DeleteFunc(slices.Clone(v.Findings), func(n int) bool { return n == about.Finding })
		return fmt.Sprintf("%s (finding %d); other violations: %s. Nothing is new.", strings.TrimSuffix(sentence, "."), about.Finding,
			findingsNamed(others))
	case v.New == 0:
		return strings.TrimSuffix(sentence, ".") + " (" + explained + "). Nothing is new."
	}
	are := "are"
	if v.New == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s %s %s NEW; the others are known: %s.", sentence, counted(v.New, "violation"), are, explained)
}

// Attribution says in short what explains the violations of a profile: "NEW: 3; findings 2, 7". It
// is "" if nothing was violated, or if findings were not consulted.
func (p ProfileResult) Attribution() string {
	var words []string
	if p.New > 0 {
		words = append(words, "NEW: "+grouped(p.New))
	}
	if len(p.Findings) > 0 {
		words = append(words, findingsNamed(p.Findings))
	}
	return strings.Join(words, "; ")
}

// Explained is Attribution for a table, which says so if there is none.
func (p ProfileResult) Explained() string {
	none := "–"
	if len(p.Violated) > 0 {
		none = "not asked"
	}
	return cmp.Or(p.Attribution(), none)
}

// newFirst puts NEW items first, then known ones, then the rest. Otherwise it keeps the order.
func newFirst[T any](all []T, core func(T) ProfileResult) []T {
	rank := func(x T) int {
		switch p := core(x); {
		case p.New > 0:
			return 0
		case p.Result == ResultFailed:
			return 1
		case len(p.Violated) > 0:
			return 2
		}
		return 3
	}
	return slices.SortedStableFunc(slices.Values(all), func(x, y T) int { return cmp.Compare(rank(x), rank(y)) })
}

// NewFirst returns the scenarios: first those with NEW violations, then those that failed in other
// ways.
func (c ConformanceReport) NewFirst() []ConformanceScenario {
	return newFirst(c.Scenarios, func(s ConformanceScenario) ProfileResult { return s.Core })
}

// attributedOf is attributed for a headline about the evidence of the invariant. If the invariant
// does not count, the headline says so, because the violations that count are known or NEW
// independently.
func (r RunReport) attributedOf(i Invariant, e Evidence, sentence string) string {
	if r.Decides(i) {
		return r.attributed(sentence, e.Known)
	}
	beyond := " This is beyond the KEP"
	if e.Known != nil {
		beyond += fmt.Sprintf(" (finding %d)", e.Known.Finding)
	}
	return sentence + beyond + strings.Replace(r.attributed("; the KEP is violated too.", nil), "Nothing is new", "Nothing that counts is new", 1)
}
