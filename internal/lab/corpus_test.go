package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

var full = flag.Bool("full", false, "judge the whole corpus and all deviations, not the part that takes a minute")

// expected is what must become of one history. It does not depend on the names of invariants,
// except for Verdicts, which 'skewproof diff' shows.
type expected struct {
	// History is the hash of the history. If it differs, the history has changed, and a difference of
	// the rest may come from that.
	History    string `json:"history"`
	Operations int    `json:"operations"`
	// Wrong and Undecided are sets of operations: by the finding that explains what is wrong, or
	// NEW, and by the reason why nothing was decided. The other operations are right. A set is a
	// list of Audit-IDs, in which "op-3..9" stands for op-3 to op-9.
	Wrong     map[string]string `json:"wrong,omitempty"`
	Undecided map[string]string `json:"undecided,omitempty"`
	// Verdicts are the outcomes, and Kinds the kinds of violations.
	Verdicts map[string]invariant.Outcome `json:"verdicts"`
	Kinds    []kind                       `json:"kinds,omitempty"`
}

type kind struct {
	Signature invariant.Signature `json:"signature"`
	Count     int                 `json:"count"`
	Finding   int                 `json:"finding,omitempty"` // 0: NEW
}

// judged judges a history, and returns what became of it.
func judged(t testing.TB, h *history.History) expected {
	t.Helper()
	var saved bytes.Buffer
	if err := history.Write(&saved, h); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(saved.Bytes())
	verdicts, decisions := invariant.Decide(h)
	known := findings.For(h.Run.Subject)
	e := expected{History: hex.EncodeToString(sum[:8]), Operations: len(decisions), Verdicts: map[string]invariant.Outcome{}}
	wrong, undecided := map[string][]string{}, map[string][]string{}
	for _, d := range decisions {
		switch {
		case len(d.Wrong) > 0:
			labels := map[string]bool{}
			for _, s := range d.Wrong {
				label := "NEW"
				if f, ok := known.Explain(s); ok {
					label = fmt.Sprintf("finding %d", f.Number)
				}
				labels[label] = true
			}
			label := strings.Join(slices.Sorted(maps.Keys(labels)), ", ")
			wrong[label] = append(wrong[label], d.Operation.ID)
		case d.Undecided != "":
			undecided[d.Undecided] = append(undecided[d.Undecided], d.Operation.ID)
		}
	}
	e.Wrong, e.Undecided = sets(wrong), sets(undecided)
	for _, v := range verdicts {
		e.Verdicts[v.Name] = v.Outcome
		for _, one := range v.Evidence {
			k := kind{Signature: one.Signature.Core(), Count: one.Count}
			if f, ok := known.Explain(one.Signature); ok {
				k.Finding = f.Number
			}
			i := slices.IndexFunc(e.Kinds, func(o kind) bool { return o.Signature == k.Signature && o.Finding == k.Finding })
			if i < 0 {
				e.Kinds = append(e.Kinds, k)
			} else {
				e.Kinds[i].Count += k.Count
			}
		}
	}
	return e
}

// sets writes lists of IDs as sets.
func sets(lists map[string][]string) map[string]string {
	out := map[string]string{}
	for label, ids := range lists {
		out[label] = set(ids)
	}
	return out
}

// set writes IDs in order, and IDs with adjacent numbers as a range.
func set(ids []string) string {
	number := func(id string) int {
		digits, ok := strings.CutPrefix(id, "op-")
		if n, err := strconv.Atoi(digits); ok && err == nil {
			return n
		}
		return -1
	}
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b string) int {
		if n, m := number(a), number(b); n >= 0 && m >= 0 {
			return n - m
		}
		return strings.Compare(a, b)
	})
	var words []string
	for i := 0; i < len(ids); {
		j := i + 1
		for j < len(ids) && number(ids[i]) >= 0 && number(ids[j]) == number(ids[j-1])+1 {
			j++
		}
		word := ids[i]
		if j > i+1 {
			word += ".." + strconv.Itoa(number(ids[j-1]))
		}
		words = append(words, word)
		i = j
	}
	return strings.Join(words, " ")
}

// without returns the operations of one set that are not in another.
func without(a, b string) string {
	other := map[string]bool{}
	for _, id := range members(b) {
		other[id] = true
	}
	return set(slices.DeleteFunc(members(a), func(id string) bool { return other[id] }))
}

// members returns the IDs of a set.
func members(of string) (ids []string) {
	for _, word := range strings.Fields(of) {
		first, last, ok := strings.Cut(word, "..")
		from, err := strconv.Atoi(strings.TrimPrefix(first, "op-"))
		to, err2 := strconv.Atoi(last)
		if !ok || err != nil || err2 != nil {
			ids = append(ids, word)
			continue
		}
		for n := from; n <= to; n++ {
			ids = append(ids, "op-"+strconv.Itoa(n))
		}
	}
	return ids
}

// report returns the part of a report that a comparison of two runs needs.
func (e expected) report(name string) reports.RunReport {
	scenario, subject, _ := strings.Cut(name, "/")
	r := reports.RunReport{Metadata: reports.Metadata{Scenario: scenario, Subject: subject}}
	for _, inv := range invariant.All() {
		i := reports.Invariant{Verdict: invariant.Verdict{Name: inv.Name, Outcome: e.Verdicts[inv.Name]}}
		for _, k := range e.Kinds {
			if k.Signature.Invariant != inv.Name {
				continue
			}
			one := reports.Evidence{New: k.Finding == 0}
			one.Signature, one.Count, one.Sentence = k.Signature, k.Count, k.Signature.String()
			if k.Finding != 0 {
				one.Known = &reports.Known{Finding: k.Finding}
			}
			i.Evidence = append(i.Evidence, one)
		}
		r.Invariants = append(r.Invariants, i)
	}
	return r
}

// differs says how what became of a history differs from what is expected; "" if it does not.
func (e expected) differs(t testing.TB, name string, got expected) string {
	t.Helper()
	if equal(t, e, got) {
		return ""
	}
	var b strings.Builder
	if e.History != got.History {
		fmt.Fprintf(&b, "the history has changed (%s, was %s): the plan, the load, the simulator or a saved file is another\n", got.History,
			e.History)
	} else {
		b.WriteString("the history is the same, and the verdict has changed\n")
	}
	moved := func(what string, before, after map[string]string) {
		for _, label := range slices.Sorted(maps.Keys(before)) {
			if left := without(before[label], after[label]); left != "" {
				fmt.Fprintf(&b, "no longer %s (%s): %s\n", what, label, shortened(left))
			}
		}
		for _, label := range slices.Sorted(maps.Keys(after)) {
			if came := without(after[label], before[label]); came != "" {
				fmt.Fprintf(&b, "now %s (%s): %s\n", what, label, shortened(came))
			}
		}
	}
	moved("wrong", e.Wrong, got.Wrong)
	moved("not decided", e.Undecided, got.Undecided)
	if err := reports.WriteComparisonText(&b, reports.Comparison{Runs: []reports.Diff{reports.Compare(e.report(name),
		got.report(name))}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func equal(t testing.TB, a, b expected) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}

// shortened returns a set that fits on a line.
func shortened(s string) string {
	if words := strings.Fields(s); len(words) > 8 {
		return fmt.Sprintf("%s … (%d more)", strings.Join(words[:8], " "), len(words)-8)
	}
	return s
}

// hold compares what became of histories with a file of what is expected of each. With -update it
// writes the file. part is true if only a part of the histories was judged.
func hold(t *testing.T, file string, got map[string]expected, part bool) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" && !part {
		save(t, file, got)
	}
	want := map[string]expected{}
	load(t, file, &want)
	operations, changed := 0, 0
	for _, e := range got {
		operations += e.Operations
	}
	defer func() {
		note(strings.TrimSuffix(filepath.Base(file), ".json.gz")+" corpus", len(got), fmt.Sprintf("%d operations; %d histories differ",
			operations, changed))
	}()
	for _, name := range slices.Sorted(maps.Keys(got)) {
		before, ok := want[name]
		if !ok {
			t.Errorf("%s: nothing is expected of it: judge the whole corpus with -update", name)
			continue
		}
		if difference := before.differs(t, name, got[name]); difference != "" {
			changed++
			t.Errorf("%s: %s", name, difference)
		}
	}
	if len(got) != len(want) && !part {
		t.Errorf("%d histories were judged, %d are expected", len(got), len(want))
	}
}

// A simulated run is made anew from its seed: subjects of the catalogue's scenarios, at the
// versions that runs have by default.
const simulatedQPS = 110 // a little more than the scenarios' minimum pressure needs

var simulatedSubjects = []string{scenario.SubjectBuiltin, scenario.SubjectReference, scenario.SubjectNone}

// simulate makes the history of a scenario for a subject.
func simulate(t testing.TB, s scenario.Scenario, subject string) *history.History {
	t.Helper()
	plan := s.Plan(scenario.Parameters{Servers: max(3, s.MinServers), From: run.DefaultFrom, To: run.DefaultTo, Bounds: history.DefaultBounds})
	simulator := sim.New(sim.SetupOf(subject))
	defer simulator.Close()
	described := history.Run{
		Scenario: s.Name, Backend: scenario.BackendSim, Subject: subject, From: run.DefaultFrom, To: run.DefaultTo, Seed: run.DefaultSeed,
		QPS:   simulatedQPS,
		About: s.About, Pressure: plan.Pressure, Bounds: plan.Bounds,
	}
	for _, server := range plan.Servers {
		described.Servers = append(described.Servers, history.Server{Name: server.Name, Version: server.Version})
	}
	c := sim.CaseOf(plan, simulatedQPS)
	result, err := simulator.Run(&c, tape.Seeded(run.DefaultSeed), sim.Options{Run: described, StopAtError: true})
	if err != nil {
		t.Fatal(err)
	}
	result.History.Sort()
	return result.History
}

const simulatedFile = "testdata/simulated.json.gz"

// briefly is the maximum number of operations of a history that is judged without -full.
const briefly = 10_000

// chosen are the scenarios that are judged. Without -full these are one of every family: that whose
// histories are the shortest, unless even these are longer than [briefly].
func chosen(t testing.TB) (list []scenario.Scenario) {
	t.Helper()
	expects := map[string]expected{}
	load(t, simulatedFile, &expects)
	length := func(s scenario.Scenario) (n int) {
		for _, subject := range simulatedSubjects {
			n = max(n, expects[s.Name+"/"+subject].Operations)
		}
		return n
	}
	for _, s := range scenarios.All() {
		if !s.Limits.Allows(scenario.BackendSim) {
			continue
		}
		if last := len(list) - 1; *full || last < 0 || list[last].Family != s.Family {
			list = append(list, s)
		} else if n := length(s); n > 0 && n < length(list[last]) {
			list[last] = s
		}
	}
	return slices.DeleteFunc(list, func(s scenario.Scenario) bool { return !*full && length(s) > briefly })
}

// TestSimulatedCorpus judges the simulated catalogue: every scenario for every subject.
func TestSimulatedCorpus(t *testing.T) {
	got := map[string]expected{}
	var mu sync.Mutex
	t.Run("runs", func(t *testing.T) {
		for _, s := range chosen(t) {
			for _, subject := range simulatedSubjects {
				if !s.Limits.AllowsSubject(subject) {
					continue
				}
				t.Run(s.Name+"/"+subject, func(t *testing.T) {
					t.Parallel()
					e := judged(t, simulate(t, s, subject))
					mu.Lock()
					defer mu.Unlock()
					got[s.Name+"/"+subject] = e
				})
			}
		}
	})
	hold(t, simulatedFile, got, !*full)
}

// TestTheCatalogueEndsAsExpected checks what is expected of the simulated histories: see [amiss].
// The net makes sure that it is what the judge says.
func TestTheCatalogueEndsAsExpected(t *testing.T) {
	kept := map[string]expected{}
	load(t, simulatedFile, &kept)
	for _, s := range scenarios.All() {
		if !s.Limits.Allows(scenario.BackendSim) {
			continue
		}
		for _, wrong := range amiss(s, kept) {
			t.Errorf("%s %s", s.Name, wrong)
		}
	}
}

// amiss says what is wrong with what is expected of a scenario. With the reference, everything that
// the scenario is about must be decided, and a finding must explain each violation: there are some
// that no proxy can prevent. What a planted defect must violate (sim/mutants) must hold. With the
// subject of its control, the scenario must violate all invariants that the control names.
func amiss(s scenario.Scenario, kept map[string]expected) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	find := func(subject string) expected {
		e, ok := kept[s.Name+"/"+subject]
		if !ok {
			say("with %s: the corpus has no history", subject)
		}
		return e
	}
	if s.Limits.AllowsSubject(scenario.SubjectReference) {
		e := find(scenario.SubjectReference)
		for _, k := range e.Kinds {
			if k.Finding == 0 {
				say("with reference: violated, and no finding explains it: %s", k.Signature)
			}
		}
		for _, about := range s.About {
			if e.Verdicts[about] == invariant.OutcomeInconclusive {
				say("with reference: %s is not decided", about)
			}
		}
		if s.Control.Defect != "" {
			for _, must := range s.Control.Invariants {
				if e.Verdicts[must] != invariant.OutcomePass {
					say("with reference: %s is %s, and its control is a planted defect", must, e.Verdicts[must])
				}
			}
		}
	}
	if subject := s.Control.Subject; subject != "" {
		e := find(subject)
		for _, must := range s.Control.Invariants {
			if e.Verdicts[must] != invariant.OutcomeFail {
				say("with %s: %s is %s, and its control must violate it", subject, must, e.Verdicts[must])
			}
		}
	}
	return wrong
}

func TestAmiss(t *testing.T) {
	const about, must = "NoFalseNotFound", "Converges"
	s := scenario.Scenario{Name: "s", About: []string{about}, Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{must}}}
	passes := expected{Verdicts: map[string]invariant.Outcome{about: invariant.OutcomePass, must: invariant.OutcomePass}}
	fails := expected{Verdicts: map[string]invariant.Outcome{must: invariant.OutcomeFail}}
	undecided := expected{Verdicts: map[string]invariant.Outcome{about: invariant.OutcomeInconclusive}}
	explained, fresh := passes, passes
	explained.Kinds = []kind{{Signature: invariant.Signature{Invariant: about}, Finding: 46}}
	fresh.Kinds = []kind{{Signature: invariant.Signature{Invariant: about}}}
	defect := s
	defect.Control = scenario.Control{Defect: "d", Invariants: []string{must}}
	for name, c := range map[string]struct {
		of   scenario.Scenario
		kept map[string]expected
		want []string // the beginnings
	}{
		"as expected":                     {s, map[string]expected{"s/reference": passes, "s/none": fails}, nil},
		"a violation, explained":          {s, map[string]expected{"s/reference": explained, "s/none": fails}, nil},
		"a new violation":                 {s, map[string]expected{"s/reference": fresh, "s/none": fails}, []string{"with reference: violated"}},
		"not decided":                     {s, map[string]expected{"s/reference": undecided, "s/none": fails}, []string{"with reference: " + about}},
		"the control passes":              {s, map[string]expected{"s/reference": passes, "s/none": passes}, []string{"with none: " + must}},
		"a defect changes what holds":     {defect, map[string]expected{"s/reference": passes}, nil},
		"a defect changes what is broken": {defect, map[string]expected{"s/reference": fails}, []string{"with reference: " + must}},
		"no histories":                    {s, nil, []string{"with reference: the corpus", "with none: the corpus", "with none: " + must}},
	} {
		t.Run(name, func(t *testing.T) {
			got := amiss(c.of, c.kept)
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}
