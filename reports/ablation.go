package reports

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/shell"
)

// AblationKind identifies the document, with [APIVersion].
const AblationKind = "Ablation"

// AblationJSON is the file of an ablation for programs.
const AblationJSON = "ablation.json"

// Ablation says which single switch causes which difference between two policies. The same
// schedules run under the older policy with one switch set as in the newer policy. They also run
// under the newer policy with one switch set as in the older policy.
type Ablation struct {
	TypeMeta
	// SkewproofVersion is the version of the program that searched.
	SkewproofVersion string `json:"skewproofVersion"`
	// Inputs is a hash of what the result depends on: the switches of both policies, the schedules
	// and the simulator.
	Inputs string `json:"inputs"`
	// Spec says what was searched. Its policy is that of From.
	Spec SearchSpec `json:"spec"`
	// To is the name of the other policy.
	To string `json:"to"`
	// Schedules is how many schedules ran under each policy. FirstSeed is the seed of the first
	// one.
	Schedules uint64 `json:"schedules"`
	FirstSeed uint64 `json:"firstSeed"`
	// Switches is the number of switches in which the policies differ. Complete is false if the
	// ablation was ended early. Then a row that was cut short, and the counts of the unchanged
	// policies, are left out.
	Switches int  `json:"switches"`
	Complete bool `json:"complete"`
	// Columns are the invariants that were violated under any policy, by the kind of request, in
	// catalogue order. All counts have the order of the columns.
	Columns []AblationColumn `json:"columns"`
	// FromCounts and ToCounts are how many schedules violated each invariant under the unchanged
	// policies.
	FromCounts []uint64 `json:"fromCounts"`
	ToCounts   []uint64 `json:"toCounts"`
	// Rows are the switches in which the policies differ, in the order of their declaration.
	Rows []AblationRow `json:"rows"`
}

// AblationColumn is an invariant that was violated in requests of one kind. Each kind has its own
// column, so that a switch about subresources does not hide one about forged hop headers.
type AblationColumn struct {
	// Invariant is the name of the invariant. Grade says which source demands it.
	Invariant string          `json:"invariant"`
	Grade     invariant.Grade `json:"grade"`
	// Asked is the kind of the requests.
	Asked RequestKind `json:"asked,omitempty"`
}

// String is the column's head.
func (c AblationColumn) String() string {
	if c.Asked == PlainRequest {
		return c.Invariant
	}
	return c.Invariant + ", " + string(c.Asked)
}

// AblationRow holds the effects of one switch.
type AblationRow struct {
	// Switch is the name of the switch. FromValue and ToValue are its values in the two policies.
	Switch    string `json:"switch"`
	FromValue string `json:"fromValue"`
	ToValue   string `json:"toValue"`
	// With are the counts of the policy From with only this switch changed to its value in To.
	// Without are the counts of To with only this switch changed to its value in From.
	With    []uint64 `json:"with"`
	Without []uint64 `json:"without"`
}

var ablations = readable[*Ablation]{"ablation", AblationKind, "run 'skewproof ablate' again to write a new one", false, (*Ablation).check}

// ReadAblation reads an ablation. It refuses any other document, unknown fields and contradictions.
// The error names the file and what is wrong with it.
func ReadAblation(path string) (*Ablation, error) { return ablations.read(path) }

// check refuses an ablation that the renderings could not show truthfully.
func (a *Ablation) check() error {
	if len(a.Rows) > a.Switches || a.Complete != (len(a.Rows) == a.Switches) {
		return fmt.Errorf("it has %d rows of %d switches and says complete: %t: the file was altered", len(a.Rows), a.Switches, a.Complete)
	}
	for n, c := range a.Columns {
		if c.Grade != invariant.GradeCore && c.Grade != invariant.GradeExtended || !slices.Contains(RequestKinds[:], c.Asked) {
			return fmt.Errorf("columns[%d] has the grade %q and the kind of request %q, which this skewproof does not know", n, c.Grade, c.Asked)
		}
	}
	lists := [][]uint64{a.FromCounts, a.ToCounts}
	for _, r := range a.Rows {
		lists = append(lists, r.With, r.Without)
	}
	for _, counts := range lists {
		if len(counts) != len(a.Columns) {
			return fmt.Errorf("it has %d columns, and a list of %d counts", len(a.Columns), len(counts))
		}
		for _, n := range counts {
			if n > a.Schedules {
				return fmt.Errorf("%d of %d schedules violate an invariant: the file was altered", n, a.Schedules)
			}
		}
	}
	return nil
}

// Command is the command line that makes the tables again, even if the defaults change later.
func (a *Ablation) Command() string {
	return shell.Line(a.Spec.ablate(a.To, a.FirstSeed, a.Schedules)...)
}

// ablate are the words of a command line that compares the policy with another one.
func (s SearchSpec) ablate(to string, first, schedules uint64) []string {
	words := append([]string{"skewproof", "ablate"}, s.flags("--from-policy")...)
	if s.Requests > 0 {
		words = append(words, "--requests", strconv.Itoa(s.Requests))
	}
	return append(words, "--to-policy", to, "--first", strconv.FormatUint(first, 10), "--seeds", strconv.FormatUint(schedules, 10))
}
