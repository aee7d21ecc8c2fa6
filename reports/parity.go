package reports

import (
	"fmt"
	"io"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// ParityKind identifies a comparison of real processes with the simulator, together with
// [APIVersion].
const ParityKind = "Parity"

// These are the names of the files of a [Parity]. It also has [JUnitFile].
const (
	ParityHTML = "parity.html"
	ParityJSON = "parity.json"
	ParityText = "parity.txt"
)

// Parity is the verdicts of the same plans on real processes and in the simulator.
type Parity struct {
	TypeMeta
	// Metadata says when the runs were compared, and by which program.
	Metadata ParityMetadata `json:"metadata"`
	// Result is "failed" if a disagreement is not known. Otherwise it is "inconclusive" if a pair of
	// runs was not compared. Otherwise it is "passed".
	Result Result `json:"result"`
	// Sentence says the result in one sentence.
	Sentence string `json:"sentence"`
	// Invariants are the invariants by which every run was judged, in the order of the catalogue.
	Invariants []MatrixInvariant `json:"invariants"`
	// Pairs are the pairs of runs, by scenario and subject.
	Pairs []ParityPair `json:"pairs"`
	Repetition
}

// ParityMetadata says when runs were compared, and by which program.
type ParityMetadata struct {
	Made
	Tested
}

// ParityPair is one plan on both backends.
type ParityPair struct {
	// Scenario, Subject, From and To are as 'skewproof run' takes them.
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	From     string `json:"from"`
	To       string `json:"to"`
	// NotCompared says why the pair was not compared. It is empty if it was.
	NotCompared string `json:"notCompared,omitempty"`
	// Local and Sim are the verdicts on real processes and in the simulator, in the order of the
	// invariants. They are empty if the pair was not compared.
	Local []invariant.Outcome `json:"local,omitempty"`
	Sim   []invariant.Outcome `json:"sim,omitempty"`
	// Disagreements are the invariants with different verdicts, in their order.
	Disagreements []ParityDisagreement `json:"disagreements,omitempty"`
	// Causes are the kinds of violations that only one of the two shows. It is nil if nobody asked
	// for them.
	Causes *ParityCauses `json:"causes,omitempty"`
	// LocalDirectory and SimDirectory hold the reports of the runs, relative to this file. They are
	// empty if there is none.
	LocalDirectory string `json:"localDirectory,omitempty"`
	SimDirectory   string `json:"simDirectory,omitempty"`
}

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

// ParityDisagreement is a disagreement with its reason.
type ParityDisagreement struct {
	Disagreement
	// Why says why the backends differ. It is empty if the disagreement is not known.
	Why string `json:"why,omitempty"`
}

// ParityCauses are the kinds of violations that two runs show, each as "invariant: asked server:
// cause". A report shows only a few kinds of each invariant, so they decide nothing.
type ParityCauses struct {
	// Both is how many kinds both runs show.
	Both int `json:"both"`
	// OnlyLocal and OnlySim are kinds that only the run on real processes, or in the simulator, shows.
	OnlyLocal []string `json:"onlyLocal,omitempty"`
	OnlySim   []string `json:"onlySim,omitempty"`
}

// NewParity makes a comparison from pairs of runs.
func NewParity(metadata ParityMetadata, pairs []ParityPair) Parity {
	p := Parity{TypeMeta: OfKind(ParityKind), Metadata: metadata, Invariants: catalogue(), Pairs: pairs}
	p.Result, p.Sentence = p.conclusion()
	return p
}

// SetVerdicts fills in the verdicts of two runs of one plan. disagreements are those on which the
// runs differ.
func (p *ParityPair) SetVerdicts(local, sim RunReport, disagreements []ParityDisagreement) {
	p.From, p.To, p.NotCompared = local.Metadata.From, local.Metadata.To, ""
	p.Local, p.Sim, p.Disagreements = verdictsOf(local), verdictsOf(sim), disagreements
}

// disagreements are the invariants with different verdicts.
func (p *ParityPair) disagreements(invariants []MatrixInvariant) (all []Disagreement) {
	for n, local := range p.Local {
		if sim := p.Sim[n]; local != sim {
			all = append(all, Disagreement{p.Scenario, p.Subject, p.From, p.To, invariants[n].Name, local, sim})
		}
	}
	return all
}

// Compared reports whether the verdicts of both runs are there.
func (p *ParityPair) Compared() bool { return p.NotCompared == "" }

// Agreement is "17 of 18": how many verdicts agree.
func (p *ParityPair) Agreement() string {
	return fmt.Sprintf("%d of %d", len(p.Local)-len(p.Disagreements), len(p.Local))
}

// unknown are the disagreements that are not known.
func (p *ParityPair) unknown() (n int) {
	for _, d := range p.Disagreements {
		if d.Why == "" {
			n++
		}
	}
	return n
}

// counts are the numbers of pairs that were compared, of verdicts in them, of disagreements, and of
// disagreements that are not known.
func (p *Parity) counts() (compared, verdicts, differ, unknown int) {
	for i := range p.Pairs {
		c := &p.Pairs[i]
		if c.Compared() {
			compared++
		}
		verdicts, differ, unknown = verdicts+len(c.Local), differ+len(c.Disagreements), unknown+c.unknown()
	}
	return compared, verdicts, differ, unknown
}

// Complete reports whether all pairs were compared.
func (p *Parity) Complete() bool {
	compared, _, _, _ := p.counts()
	return compared == len(p.Pairs)
}

func (p *Parity) conclusion() (Result, string) {
	compared, verdicts, differ, unknown := p.counts()
	told := fmt.Sprintf("%s of %s agree", grouped(verdicts-differ), counted(verdicts, "verdict"))
	switch {
	case unknown > 0:
		told += fmt.Sprintf("; %d of %s not known", unknown, counted(differ, "disagreement"))
	case differ > 0:
		told += fmt.Sprintf("; the reason of every disagreement is known (%d)", differ)
	}
	if missing := len(p.Pairs) - compared; missing > 0 {
		told += fmt.Sprintf("; %d of %s of runs not compared", missing, counted(len(p.Pairs), "pair"))
	}
	switch {
	case unknown > 0:
		return ResultFailed, told
	case compared < len(p.Pairs) || compared == 0:
		return ResultInconclusive, told
	default:
		return ResultPassed, told
	}
}

// SaveParity writes the comparison into dir as [ParityJSON], [ParityText], [ParityHTML] and
// [JUnitFile]. It makes dir if dir does not exist. It is as atomic as [WriteAll].
func SaveParity(dir string, p Parity) error {
	return save(dir, p, []rendering[Parity]{
		{ParityJSON, writeIndented[Parity]},
		{ParityText, func(w io.Writer, p Parity) error { return WriteParityText(w, p, SummaryOptions{}) }},
		{ParityHTML, WriteParityHTML},
		{JUnitFile, WriteParityJUnit},
	})
}

var parities = readable[Parity]{"comparison with the simulator", ParityKind, "run 'skewproof parity' again to write a new one", false, Parity.check}

// ReadParity reads a comparison. It refuses any other document, unknown fields and a result that
// does not follow from the verdicts. The error names the file and what is wrong with it.
func ReadParity(path string) (Parity, error) { return parities.read(path) }

// check refuses a comparison that the renderings could not show truthfully.
func (p Parity) check() error {
	for n := range p.Pairs {
		if err := p.Pairs[n].check(p.Invariants); err != nil {
			return fmt.Errorf("pairs[%d] (%s, %s): %w", n, p.Pairs[n].Scenario, p.Pairs[n].Subject, err)
		}
	}
	if result, _ := p.conclusion(); p.Result != result {
		return fmt.Errorf("result is %q, and its verdicts make it %q: the file was altered", p.Result, result)
	}
	return nil
}

func (p *ParityPair) check(invariants []MatrixInvariant) error {
	want := len(invariants)
	if !p.Compared() {
		want = 0
	}
	if len(p.Local) != want || len(p.Sim) != want {
		return fmt.Errorf("it has %d verdicts on real processes and %d in the simulator: want %d of each", len(p.Local), len(p.Sim), want)
	}
	if want == 0 && p.Compared() {
		return fmt.Errorf("it was compared, and there is no invariant")
	}
	for _, o := range slices.Concat(p.Local, p.Sim) {
		if !known(o) {
			return fmt.Errorf("verdict %q is not pass, fail or inconclusive", o)
		}
	}
	same := func(have ParityDisagreement, want Disagreement) bool { return have.Disagreement == want }
	if !slices.EqualFunc(p.Disagreements, p.disagreements(invariants), same) {
		return fmt.Errorf("its disagreements do not follow from its verdicts: the file was altered")
	}
	return nil
}
