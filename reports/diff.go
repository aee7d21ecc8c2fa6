package reports

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Diff is what changed from a run A to a run B of the same scenario and subject.
type Diff struct {
	Scenario, Subject string
	A, B              RunReport
	// Kinds are the kinds of violations of either, what is new in B first.
	Kinds []KindDiff
	// Verdicts are the invariants whose outcome differs, in catalogue order.
	Verdicts []VerdictDiff
}

// DiffState says what became of a kind of violation.
type DiffState string

// The states, in the order in which they are shown.
const (
	DiffNew      DiffState = "new"        // B has it, A has not
	DiffStill    DiffState = "still"      // both have it
	DiffFixed    DiffState = "fixed"      // A has it; B was tested for it, and has not
	DiffUntested DiffState = "not tested" // A has it; B proves nothing about its invariant
)

var diffStates = []DiffState{DiffNew, DiffStill, DiffFixed, DiffUntested}

// KindDiff is what became of one kind of violation.
type KindDiff struct {
	State DiffState
	// Signature is without its circumstances, which may differ by chance.
	Signature invariant.Signature
	// A and B are how many violations there were.
	A, B int
	// Label is "NEW", "known (finding N)", or "" if nobody has asked: see [Evidence.Label].
	Label string
	// Sentence tells one violation: of B if there is one there.
	Sentence string
}

// VerdictDiff is an invariant whose outcome differs.
type VerdictDiff struct {
	Name string
	A, B invariant.Outcome
}

// Compare compares two judged runs.
func Compare(a, b RunReport) Diff {
	d := Diff{Scenario: b.Metadata.Scenario, Subject: b.Metadata.Subject, A: a, B: b}
	kinds := map[invariant.Signature]*KindDiff{}
	collect := func(r RunReport, count func(*KindDiff) *int) {
		for _, i := range r.Invariants {
			for _, e := range i.Evidence {
				key := e.Signature.Core()
				k := kinds[key]
				if k == nil {
					k = &KindDiff{Signature: key}
					kinds[key] = k
				}
				if n := count(k); *n == 0 { // the first is NEW, or the least common
					k.Label, k.Sentence = e.Label(), e.Sentence
				}
				*count(k) += e.Count
			}
		}
	}
	collect(a, func(k *KindDiff) *int { return &k.A })
	collect(b, func(k *KindDiff) *int { return &k.B })
	outcomes := map[string]invariant.Outcome{}
	for _, i := range b.Invariants {
		outcomes[i.Name] = i.Outcome
	}
	for _, k := range kinds { // in any order
		switch {
		case k.A == 0:
			k.State = DiffNew
		case k.B > 0:
			k.State = DiffStill
		case outcomes[k.Signature.Invariant] == invariant.OutcomeInconclusive || outcomes[k.Signature.Invariant] == "":
			k.State = DiffUntested
		default:
			k.State = DiffFixed
		}
		d.Kinds = append(d.Kinds, *k)
	}
	slices.SortFunc(d.Kinds, func(x, y KindDiff) int {
		return cmp.Or(cmp.Compare(slices.Index(diffStates, x.State), slices.Index(diffStates, y.State)), x.Signature.Compare(y.Signature))
	})
	for _, i := range a.Invariants {
		if o := outcomes[i.Name]; o != i.Outcome {
			d.Verdicts = append(d.Verdicts, VerdictDiff{i.Name, i.Outcome, o})
		}
	}
	return d
}

// Worse reports whether B has a kind of violation that A has not.
func (d Diff) Worse() bool {
	return slices.ContainsFunc(d.Kinds, func(k KindDiff) bool { return k.State == DiffNew })
}

// FindRuns returns the reports of all judged runs below a directory, which may be that of one run or
// that of a suite, in the order of their paths. Control runs are left out.
func FindRuns(dir string) ([]RunReport, error) {
	var all []RunReport
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "control" && path != dir:
			return filepath.SkipDir
		case entry.IsDir() || entry.Name() != JSONFile:
			return nil
		}
		r, err := Read(path)
		if err != nil {
			return err
		}
		for _, i := range r.Invariants {
			if slices.ContainsFunc(i.Evidence, func(e Evidence) bool { return e.Signature.Mechanism == "" }) {
				return fmt.Errorf("%s was written by an older skewproof, without signatures: 'skewproof judge %s' writes it anew", path, filepath.Dir(path))
			}
		}
		all = append(all, r)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s holds no judged run: there is no %s in it", dir, JSONFile)
	}
	return all, err
}

// CompareAll compares the runs of two lists that are of the same scenario and subject, the first of
// each. unpaired names those that only one list has.
func CompareAll(a, b []RunReport) (diffs []Diff, unpaired []string) {
	name := func(r RunReport) string { return r.Metadata.Scenario + ", " + r.Metadata.Subject }
	find := func(in []RunReport, r RunReport) int {
		return slices.IndexFunc(in, func(o RunReport) bool { return name(o) == name(r) })
	}
	for _, r := range a {
		if i := find(b, r); i >= 0 {
			diffs = append(diffs, Compare(r, b[i]))
		} else {
			unpaired = append(unpaired, name(r)+": only in A")
		}
	}
	for _, r := range b {
		if find(a, r) < 0 {
			unpaired = append(unpaired, name(r)+": only in B")
		}
	}
	return diffs, unpaired
}

// WriteDiffs writes the diffs as text, or as Markdown for a comment.
func WriteDiffs(w io.Writer, diffs []Diff, unpaired []string, markdown bool) error {
	var b strings.Builder
	for _, d := range diffs {
		if markdown {
			d.markdown(&b)
		} else {
			d.text(&b)
		}
	}
	for _, u := range unpaired {
		fmt.Fprintf(&b, "%s\n", plain(u))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// side is one run in a line.
func side(r RunReport) string {
	m := r.Metadata
	versions := m.From
	if m.To != "" && m.To != m.From {
		versions += " → " + m.To
	}
	return fmt.Sprintf("%s, %s, %s, skewproof %s", r.Verdict.Outcome, versions, counted(m.Operations, "request"), m.SkewproofVersion)
}

func (d Diff) text(b *strings.Builder) {
	fmt.Fprintf(b, "%s, %s\n  A: %s\n  B: %s\n", plain(d.Scenario), plain(d.Subject), plain(side(d.A)), plain(side(d.B)))
	for _, k := range d.Kinds {
		fmt.Fprintf(b, "  %-10s %s → %s  %s", k.State, grouped(k.A), grouped(k.B), plain(k.Signature.String()))
		if k.Label != "" {
			fmt.Fprintf(b, " [%s]", k.Label)
		}
		b.WriteString("\n")
		if k.State == DiffNew {
			fmt.Fprintf(b, "             %s\n", plain(k.Sentence))
		}
	}
	for _, v := range d.Verdicts {
		fmt.Fprintf(b, "  %s: %s → %s\n", plain(v.Name), orNone(v.A), orNone(v.B))
	}
	if len(d.Kinds)+len(d.Verdicts) == 0 {
		b.WriteString("  no difference\n")
	}
	b.WriteString("\n")
}

func (d Diff) markdown(b *strings.Builder) {
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'") // a server wrote some of it
	cell := func(s string) string { return escape.Replace(plain(s)) }
	fmt.Fprintf(b, "**%s, %s**\n\n- A: %s\n- B: %s\n", cell(d.Scenario), cell(d.Subject), cell(side(d.A)), cell(side(d.B)))
	for _, v := range d.Verdicts {
		fmt.Fprintf(b, "- %s: %s → %s\n", cell(v.Name), orNone(v.A), orNone(v.B))
	}
	if len(d.Kinds) > 0 {
		b.WriteString("\n| | A | B | violation | |\n|---|---:|---:|---|---|\n")
	}
	for _, k := range d.Kinds {
		fmt.Fprintf(b, "| %s | %d | %d | %s | %s |\n", k.State, k.A, k.B, cell(k.Signature.String()), cell(k.Label))
	}
	b.WriteString("\n")
}

func orNone(o invariant.Outcome) invariant.Outcome { return cmp.Or(o, "none") }
