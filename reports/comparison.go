package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Comparison says what changed from A to B. These are two runs, two conformance suites, two
// matrices, or two campaigns.
type Comparison struct {
	A, B Compared
	// Scenarios are the scenarios of suites that failed in A or in B, new failures first. Passed is
	// how many scenarios did not fail in either.
	Scenarios []ScenarioDiff
	Passed    int
	// Runs are the runs that exist on both sides, with new violations first.
	Runs []Diff
	// Kinds are the kinds of violations that campaigns found, new kinds first.
	Kinds []KindDiff
	// Notes say what could not be compared.
	Notes []string
}

// comparedScenario is the verdict of a suite on one scenario.
type comparedScenario struct {
	name           string
	core, extended ProfileResult
}

// ScenarioDiff says how the result of one scenario of a suite changed.
type ScenarioDiff struct {
	// Name is the name of the scenario. In a matrix, it also has the subject and the versions.
	Name  string
	State DiffState
	// A and B are the results in the profile core.
	A, B ProfileResult
	// gained is true if B has violations of a finding that A does not have, or if B has NEW
	// violations and A has none.
	gained bool
}

// CompareAll compares two sides. It returns an error if they cannot be compared or have nothing in
// common.
func CompareAll(a, b Compared) (Comparison, error) {
	c := Comparison{A: a, B: b}
	suites := len(a.scenarios) > 0 && len(b.scenarios) > 0
	switch {
	case (a.campaign == nil) != (b.campaign == nil), (len(a.scenarios) > 0) != (len(b.scenarios) > 0), suites && a.Document != b.Document:
		return c, fmt.Errorf("%s is a %s and %s a %s: compare two of one kind", a.Path, a.Document, b.Path, b.Document)
	case suites && a.about != b.about:
		return c, fmt.Errorf("%s is of %s and %s of %s: compare suites of one backend and one subject", a.Path, a.about, b.Path, b.about)
	case a.campaign != nil:
		return c, c.campaigns(a.campaign, b.campaign)
	}
	pairs, onlyA, onlyB := paired(a.runs, b.runs)
	for _, p := range pairs {
		c.Runs = append(c.Runs, Compare(p[0], p[1]))
	}
	slices.SortStableFunc(c.Runs, func(x, y Diff) int { return cmp.Compare(x.worst(), y.worst()) })
	if !suites {
		c.only(onlyA, onlyB)
		if len(c.Runs) == 0 {
			return c, fmt.Errorf("no scenario is in both %s (%s) and %s (%s) on one backend, with one subject",
				a.Path, some(a.runs), b.Path, some(b.runs))
		}
		return c, nil
	}
	return c, c.suites()
}

// worst is the rank of the first kind of violations. A run without violations has the last rank.
func (d Diff) worst() int {
	if len(d.Kinds) == 0 {
		return len(diffStates)
	}
	return d.Kinds[0].State.rank()
}

// only adds a note for each name that only one side has.
func (c *Comparison) only(a, b []string) {
	for _, name := range a {
		c.Notes = append(c.Notes, name+": only in A")
	}
	for _, name := range b {
		c.Notes = append(c.Notes, name+": only in B")
	}
}

// named identifies a run without its versions.
func named(r RunReport) string {
	m := r.Metadata
	return m.Scenario + ", " + m.Subject + ", " + cmp.Or(m.Backend, "no backend")
}

// some names the first few runs, for an error.
func some(runs []RunReport) string {
	var names []string
	for _, r := range runs[:min(3, len(runs))] {
		names = append(names, named(r))
	}
	if len(runs) > len(names) {
		names = append(names, "…")
	}
	return strings.Join(names, "; ")
}

// paired finds the runs of the same scenario, subject and backend. First it pairs runs of the same
// versions too, then the others, in their order.
func paired(a, b []RunReport) (pairs [][2]RunReport, onlyA, onlyB []string) {
	takenA, takenB := make([]bool, len(a)), make([]bool, len(b))
	for _, exact := range []bool{true, false} {
		for i, x := range a {
			for j, y := range b {
				same := named(x) == named(y) && (!exact || x.Metadata.From == y.Metadata.From && x.Metadata.To == y.Metadata.To)
				if same && !takenA[i] && !takenB[j] {
					takenA[i], takenB[j] = true, true
					pairs = append(pairs, [2]RunReport{x, y})
				}
			}
		}
	}
	for i, x := range a {
		if !takenA[i] {
			onlyA = append(onlyA, named(x))
		}
	}
	for j, y := range b {
		if !takenB[j] {
			onlyB = append(onlyB, named(y))
		}
	}
	return pairs, onlyA, onlyB
}

// suites compares the verdicts on scenarios.
func (c *Comparison) suites() error {
	both := 0
	var onlyA, onlyB []string
	for _, x := range c.A.scenarios {
		i := slices.IndexFunc(c.B.scenarios, func(y comparedScenario) bool { return y.name == x.name })
		if i < 0 {
			onlyA = append(onlyA, x.name)
			continue
		}
		both++
		if d := compareScenario(x, c.B.scenarios[i]); d.State != "" {
			c.Scenarios = append(c.Scenarios, d)
		} else {
			c.Passed++
		}
	}
	for _, y := range c.B.scenarios {
		if !slices.ContainsFunc(c.A.scenarios, func(x comparedScenario) bool { return x.name == y.name }) {
			onlyB = append(onlyB, y.name)
		}
	}
	c.only(onlyA, onlyB)
	slices.SortStableFunc(c.Scenarios, func(x, y ScenarioDiff) int { return cmp.Compare(x.State.rank(), y.State.rank()) })
	if both == 0 {
		return fmt.Errorf("no scenario is in both %s and %s", c.A.Path, c.B.Path)
	}
	return nil
}

// compareScenario compares the verdicts on one scenario. The result has no state if the scenario
// failed on neither side.
func compareScenario(a, b comparedScenario) ScenarioDiff {
	d := ScenarioDiff{Name: a.name, A: a.core, B: b.core}
	failed := func(s comparedScenario) bool {
		return s.core.standing().And(s.extended.standing()).Violated
	}
	switch {
	case failed(a) && failed(b):
		d.State = DiffStill
		d.gained = b.core.New > 0 && a.core.New == 0 ||
			slices.ContainsFunc(b.core.Findings, func(n int) bool { return !slices.Contains(a.core.Findings, n) })
	case failed(b):
		d.State, d.gained = DiffNew, true
	case failed(a) && b.core.Result == ResultPassed:
		d.State = DiffFixed
	case failed(a):
		d.State = DiffUntested
	}
	return d
}

// campaigns compares what two searches found.
func (c *Comparison) campaigns(a, b *Campaign) error {
	scope := func(x *Campaign) string { // without the policy, which may differ
		s := x.Spec
		return fmt.Sprintf("%s schedules of %s and %s, %s, %s, %s requests, %d events, from seed %d", x.Method, s.From, s.To,
			counted(s.Servers, "server"), counted(s.Resources, "resource"), grouped(s.Requests), x.Events(), x.FirstSeed)
	}
	if scope(a) != scope(b) {
		return fmt.Errorf("%s and %s searched different schedules, so that what one lacks says nothing: %s; %s",
			c.A.Path, c.B.Path, scope(a), scope(b))
	}
	find := func(in *Campaign, f CampaignFinding) *CampaignFinding {
		for i := range in.Findings {
			if o := &in.Findings[i]; o.ViolationKind == f.ViolationKind && (f.Finding != 0 || o.Invariant == f.Invariant) {
				return o
			}
		}
		return nil
	}
	kind := func(f CampaignFinding) KindDiff {
		k := KindDiff{Signature: f.ViolationKind.Signature, Sentence: f.Sentence, Label: "NEW", Title: f.Title}
		if f.Finding != 0 {
			k.Label = fmt.Sprintf("known (finding %d)", f.Finding)
		}
		return k
	}
	for _, f := range b.Findings {
		k := kind(f)
		k.State, k.B = DiffNew, int(f.Schedules)
		if before := find(a, f); before != nil {
			k.State, k.A = DiffStill, int(before.Schedules)
		}
		c.Kinds = append(c.Kinds, k)
	}
	for _, f := range a.Findings {
		if find(b, f) != nil {
			continue
		}
		k := kind(f)
		k.State, k.A = DiffFixed, int(f.Schedules)
		if f.Seed >= b.FirstSeed+b.Schedules {
			k.State = DiffUntested
		}
		c.Kinds = append(c.Kinds, k)
	}
	slices.SortStableFunc(c.Kinds, func(x, y KindDiff) int { return cmp.Compare(x.State.rank(), y.State.rank()) })
	if a.Schedules != b.Schedules {
		c.Notes = append(c.Notes, fmt.Sprintf("A ran %s schedules and B %s: what only one of them found may be due to that",
			grouped(int(a.Schedules)), grouped(int(b.Schedules))))
	}
	return nil
}

// Worse reports whether B has something that A does not have: a kind of violation, a failed
// scenario, or, in a suite without its runs, a failure with another cause.
func (c Comparison) Worse() bool {
	return slices.ContainsFunc(c.Runs, Diff.Worse) ||
		slices.ContainsFunc(c.Kinds, func(k KindDiff) bool { return k.State == DiffNew }) ||
		slices.ContainsFunc(c.Scenarios, func(s ScenarioDiff) bool { return s.State == DiffNew || s.gained && len(c.Runs) == 0 })
}

// shown splits the runs: those that a text for people shows in full, and those of a suite in which
// nothing changed.
func (c Comparison) shown() (full, unchanged []Diff) {
	for _, d := range c.Runs {
		if len(c.Runs) == 1 || d.changed() {
			full = append(full, d)
		} else {
			unchanged = append(unchanged, d)
		}
	}
	return full, unchanged
}

// Tally counts the kinds of violations of all runs, or of campaigns, by state: "1 new, 3 still, 2
// fixed".
func (c Comparison) Tally() string {
	counts := map[DiffState]int{}
	for _, k := range c.Kinds {
		counts[k.State]++
	}
	for _, r := range c.Runs {
		for _, k := range r.Kinds {
			counts[k.State]++
		}
	}
	return tally(counts)
}

// TallyScenarios counts the scenarios by state.
func (c Comparison) TallyScenarios() string {
	counts := map[DiffState]int{}
	for _, s := range c.Scenarios {
		counts[s.State]++
	}
	words := tally(counts)
	if c.Passed > 0 {
		words += fmt.Sprintf(", %d did not fail in either", c.Passed)
	}
	return words
}

func tally(counts map[DiffState]int) string {
	var words []string
	for _, s := range diffStates {
		if n := counts[s]; n > 0 || s != DiffUntested {
			words = append(words, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(words, ", ")
}

// Verdict says the result of the comparison in one sentence.
func (c Comparison) Verdict() string {
	words := "B has no kind of violation that A has not"
	if c.Worse() {
		words = "B has something that A has not"
	}
	if len(c.Kinds)+len(c.Runs) > 0 {
		words += ". Kinds of violations: " + c.Tally()
	}
	if len(c.A.scenarios) > 0 {
		words += ". Scenarios: " + c.TallyScenarios()
	}
	return words + "."
}

// Outcome is the outcome whose sign and colour represent the comparison.
func (c Comparison) Outcome() invariant.Outcome {
	if c.Worse() {
		return invariant.OutcomeFail
	}
	return invariant.OutcomePass
}

// side describes one run in a line.
func side(r RunReport) string {
	m := r.Metadata
	versions := m.From
	if m.To != "" && m.To != m.From {
		versions += " → " + m.To
	}
	return fmt.Sprintf("%s, %s, %s, skewproof %s", Word(r.Verdict.Outcome), versions, counted(m.Operations, "request"), m.SkewproofVersion)
}
