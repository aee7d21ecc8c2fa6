package reports

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Diff says what changed from a run A to a run B of the same scenario and subject.
type Diff struct {
	Scenario, Subject string
	A, B              RunReport
	// Kinds are the kinds of violations in either run. Kinds that are new in B come first.
	Kinds []KindDiff
	// Verdicts are the invariants whose outcome differs, in catalogue order.
	Verdicts []VerdictDiff
	// Rates and Latencies are by class of requests. They also differ by chance, so they decide
	// nothing.
	Rates     []RateDiff
	Latencies []LatencyDiff
	// Discovery says how the lists of merged discovery differ. It is nil if nothing differs, or if
	// a report does not say what merged discovery listed.
	Discovery *DiscoveryDiff
}

// DiffState says how a kind of violation changed.
type DiffState string

// These are all states, in the order in which they are shown.
const (
	DiffNew      DiffState = "new"        // B has it, A does not
	DiffStill    DiffState = "still"      // both have it
	DiffFixed    DiffState = "fixed"      // A has it; B was tested for it and does not have it
	DiffUntested DiffState = "not tested" // A has it; B proves nothing about it
)

var diffStates = []DiffState{DiffNew, DiffStill, DiffFixed, DiffUntested}

// rank is the place of the state in the order in which states are shown.
func (s DiffState) rank() int { return slices.Index(diffStates, s) }

// Outcome is the outcome whose sign and colour represent the state.
func (s DiffState) Outcome() invariant.Outcome {
	switch s {
	case DiffNew:
		return invariant.OutcomeFail
	case DiffFixed:
		return invariant.OutcomePass
	}
	return invariant.OutcomeInconclusive
}

// KindDiff says how one kind of violation changed.
type KindDiff struct {
	State DiffState
	// Signature has no circumstances, because these may differ by chance. It is zero if a campaign
	// shows the kind by the finding that explains it.
	Signature invariant.Signature
	// A and B are the numbers of violations. In campaigns, they are the numbers of schedules that
	// showed the kind.
	A, B int
	// Label is "NEW", "known (finding N)", or "" if findings were not consulted: see
	// [Evidence.Label].
	Label string
	// Sentence describes one violation, in B if B has one.
	Sentence string
	// Title is the title of the finding if there is no signature.
	Title string
}

// Kind describes the kind in one line, without its label.
func (k KindDiff) Kind() string {
	if k.Title != "" {
		return k.Title
	}
	return k.Signature.String()
}

// VerdictDiff is an invariant whose outcome differs.
type VerdictDiff struct {
	Name string
	// A and B are the outcomes. An outcome is empty if the report does not know the invariant.
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
				if n := count(k); *n == 0 { // the first evidence is NEW, or the least common
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
		return cmp.Or(cmp.Compare(x.State.rank(), y.State.rank()), x.Signature.Compare(y.Signature))
	})
	for _, i := range a.Invariants {
		if o := outcomes[i.Name]; o != i.Outcome {
			d.Verdicts = append(d.Verdicts, VerdictDiff{i.Name, i.Outcome, o})
		}
	}
	d.Rates, d.Latencies, d.Discovery = compareRates(a, b), compareLatencies(a, b), compareDiscovery(a, b)
	return d
}

// changed reports whether anything differs except counts, shares and latencies.
func (d Diff) changed() bool {
	return len(d.Verdicts) > 0 || d.Discovery != nil || slices.ContainsFunc(d.Kinds, func(k KindDiff) bool { return k.State != DiffStill })
}

// Tally counts the kinds of violations by state.
func (d Diff) Tally() string {
	counts := map[DiffState]int{}
	for _, k := range d.Kinds {
		counts[k.State]++
	}
	return tally(counts)
}

// Worse reports whether B has a kind of violation that A does not have.
func (d Diff) Worse() bool {
	return slices.ContainsFunc(d.Kinds, func(k KindDiff) bool { return k.State == DiffNew })
}
