package search

import (
	"context"
	"fmt"

	"github.com/skewproof/skewproof/internal/invariant"
)

// AblationKind identifies the document, with [CampaignVersion].
const AblationKind = "Ablation"

// Ablation says which single switch makes which difference between two policies: the older one with one switch as the newer has it, and
// the newer one with one switch as the older has it, all on the same schedules.
type Ablation struct {
	// APIVersion is always [CampaignVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is always [AblationKind].
	Kind string `json:"kind"`
	// SkewproofVersion is the version of the program that searched.
	SkewproofVersion string `json:"skewproofVersion"`
	// Spec is what was searched; its policy is that of From.
	Spec Spec `json:"spec"`
	// To is the name of the other policy.
	To string `json:"to"`
	// Schedules is how many were run under each policy, from FirstSeed on.
	Schedules uint64 `json:"schedules"`
	FirstSeed uint64 `json:"firstSeed"`
	// Switches is in how many the policies differ, and Complete is false when it was ended before all had been tried. What was cut short is left
	// out: a row, or, with no row, the counts of the policies as they are.
	Switches int  `json:"switches"`
	Complete bool `json:"complete"`
	// Columns are the invariants that were violated under any policy, by what was peculiar about the request, in the order of the catalogue.
	// Counts are in their order.
	Columns []AblationColumn `json:"columns"`
	// FromCounts and ToCounts are of the two policies as they are: how many schedules violated each invariant.
	FromCounts []uint64 `json:"fromCounts"`
	ToCounts   []uint64 `json:"toCounts"`
	// Rows are the switches in which the policies differ, in the order of their declaration.
	Rows []AblationRow `json:"rows"`
}

// AblationColumn is an invariant, violated in requests of one kind: a switch that is about forged hop headers is not to be hidden by one that
// is about subresources.
type AblationColumn struct {
	Invariant string          `json:"invariant"`
	Grade     invariant.Grade `json:"grade"`
	Asked     Peculiarity     `json:"asked,omitempty"`
}

// String is the column's head.
func (c AblationColumn) String() string {
	s := c.Invariant
	if c.Asked != PeculiarNothing {
		s += ", " + string(c.Asked)
	}
	return s
}

// AblationRow is one switch.
type AblationRow struct {
	// Switch is its name, and FromValue and ToValue what it is in the two policies.
	Switch    string `json:"switch"`
	FromValue string `json:"fromValue"`
	ToValue   string `json:"toValue"`
	// With are the counts of the one policy with this switch alone as in the other; Without those of the other with this switch
	// alone as in the one.
	With    []uint64 `json:"with"`
	Without []uint64 `json:"without"`
}

// Ablate compares a spec's policy with another one, switch by switch. ShrinkRuns and shards are not used. progress, if set, is told each policy
// that is begun.
func Ablate(ctx context.Context, spec Spec, to string, o Options, progress func(change string, done, of int)) (*Ablation, error) {
	if o.Shards > 1 || o.Seeds == 0 {
		return nil, fmt.Errorf("an ablation needs a number of schedules, and cannot be sharded")
	}
	there, back, err := ablated(spec, to)
	if err != nil {
		return nil, err
	}
	other := spec
	other.Policy, other.Changes = to, nil
	a := &Ablation{
		APIVersion: CampaignVersion, Kind: AblationKind, SkewproofVersion: o.Version, Spec: spec, To: to, Schedules: o.Seeds, FirstSeed: max(o.First, 1),
		Switches: len(there),
	}
	runs := counting{ctx: ctx, options: o, progress: progress, of: 2 + 2*len(there)}
	a.FromCounts, a.ToCounts = runs.count(spec), runs.count(other)
	if ctx.Err() != nil {
		a.FromCounts, a.ToCounts = nil, nil
	}
	for i := range there {
		name, value := cutChange(there[i])
		_, was := cutChange(back[i])
		row := AblationRow{Switch: name, FromValue: was, ToValue: value}
		row.With, row.Without = runs.count(changed(spec, there[i])), runs.count(changed(other, back[i]))
		if runs.err != nil || ctx.Err() != nil {
			break
		}
		a.Rows = append(a.Rows, row)
	}
	a.Complete = len(a.Rows) == len(there)
	a.narrow()
	return a, runs.err
}

// CheckAblation reports why two policies cannot be compared.
func CheckAblation(spec Spec, to string) error {
	if _, err := NewGenerator(spec); err != nil {
		return err
	}
	_, _, err := ablated(spec, to)
	return err
}

// ablated lists the changes from a spec's policy to another one, and those back.
func ablated(spec Spec, to string) (there, back []string, err error) {
	from, on, err := spec.Build()
	if err != nil {
		return nil, nil, err
	}
	target, also, err := Spec{Policy: to}.Build()
	if err != nil {
		return nil, nil, err
	}
	if !on || !also {
		return nil, nil, fmt.Errorf("policy %s has no switches", None)
	}
	there, back = Differences(from, target), Differences(target, from)
	if len(there) == 0 {
		return nil, nil, fmt.Errorf("policies %s and %s are the same", spec, to)
	}
	return there, back, nil
}

// counting runs the same schedules under several policies.
type counting struct {
	ctx      context.Context
	options  Options
	progress func(change string, done, of int)
	done, of int
	err      error
}

// count is how many schedules violate each invariant, in the order of the catalogue, and for each kind of request.
func (r *counting) count(spec Spec) []uint64 {
	if r.err != nil {
		return nil
	}
	if r.progress != nil {
		r.progress(spec.String(), r.done, r.of)
	}
	r.done++
	o := r.options
	o.ShrinkRuns, o.Progress = -1, nil
	c, err := Explore(r.ctx, spec, o)
	if err != nil {
		r.err = err
		return nil
	}
	if len(c.Troubles) > 0 && r.ctx.Err() == nil {
		r.err = fmt.Errorf("policy %s, seed %d: %s", spec, c.Troubles[0].Seed, c.Troubles[0].Sentence)
	}
	counts := make([]uint64, 0, len(c.Invariants))
	for _, i := range c.Invariants {
		for _, r := range i.Requests {
			counts = append(counts, r.Violated)
		}
	}
	return counts
}

// narrow leaves out the columns of which there is no violation.
func (a *Ablation) narrow() {
	var kept []int
	var all []AblationColumn
	for _, inv := range invariant.All() {
		for _, p := range peculiarities {
			all = append(all, AblationColumn{inv.Name, inv.Grade, p})
		}
	}
	for i, column := range all {
		sum := at(a.FromCounts, i) + at(a.ToCounts, i)
		for _, r := range a.Rows {
			sum += at(r.With, i) + at(r.Without, i)
		}
		if sum > 0 {
			kept = append(kept, i)
			a.Columns = append(a.Columns, column)
		}
	}
	pick := func(counts []uint64) []uint64 {
		some := make([]uint64, len(kept))
		for j, i := range kept {
			some[j] = at(counts, i)
		}
		return some
	}
	a.FromCounts, a.ToCounts = pick(a.FromCounts), pick(a.ToCounts)
	for i := range a.Rows {
		a.Rows[i].With, a.Rows[i].Without = pick(a.Rows[i].With), pick(a.Rows[i].Without)
	}
}

func at(counts []uint64, i int) uint64 {
	if i < len(counts) {
		return counts[i]
	}
	return 0
}

// share is how much of what a policy violates a change removes, from 0 to 1; less than 0 if it adds to it.
func share(before, after uint64) float64 {
	if before == 0 {
		return 0
	}
	return 1 - float64(after)/float64(before)
}

// DefaultAblationSeeds is how many schedules are run under each policy where nothing else is asked for.
const DefaultAblationSeeds = 2000
