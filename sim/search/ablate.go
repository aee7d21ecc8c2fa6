package search

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports"
)

// DefaultAblationSeeds is the default number of schedules under each policy.
const DefaultAblationSeeds = 2000

// Ablation compares two policies, switch by switch.
type Ablation struct {
	from, to Spec
	options  Options
	// there are the changes that turn from into to, one switch each; back are the changes that undo
	// them.
	there, back []string
}

// Ablate prepares the comparison of a spec's policy with another policy. ShrinkRuns is not
// used.
func Ablate(spec Spec, to string, o Options) (*Ablation, error) {
	a := &Ablation{from: spec, to: spec, options: o}
	a.to.Policy, a.to.Changes = to, nil
	a.options.ShrinkRuns = -1
	if o.Seeds == 0 {
		return nil, errors.New("--seeds 0: want at least 1")
	}
	if _, err := Explore(spec, a.options); err != nil {
		return nil, err
	}
	from, on, err := a.from.Build()
	if err != nil {
		return nil, err
	}
	target, also, err := a.to.Build()
	if err != nil {
		return nil, fmt.Errorf("--to-policy: %w", err)
	}
	if !on || !also {
		return nil, fmt.Errorf("policy %s has no switches", None)
	}
	a.there, a.back = proxy.Differences(from, target), proxy.Differences(target, from)
	if len(a.there) == 0 {
		return nil, fmt.Errorf("policies %s and %s are the same", spec, to)
	}
	return a, nil
}

// Run runs the same schedules under both policies, and under each policy with one switch set as in
// the other. It calls progress (may be nil) before each of these policies.
func (a *Ablation) Run(ctx context.Context, progress func(policy string, done, of int)) (*reports.Ablation, error) {
	o := a.options
	r := &reports.Ablation{
		TypeMeta: reports.OfKind(reports.AblationKind), SkewproofVersion: o.Version, Spec: reports.SearchSpec(a.from),
		To:        a.to.Policy,
		Schedules: o.Seeds, FirstSeed: max(o.First, 1), Switches: len(a.there),
	}
	var err error
	if r.Inputs, err = Inputs(a.from); err != nil {
		return nil, err
	}
	done := 0
	count := func(spec Spec) ([]uint64, error) {
		if progress != nil {
			progress(spec.String(), done, 2+2*len(a.there))
		}
		done++
		return violating(ctx, spec, o)
	}
	from, err := count(a.from)
	if err != nil {
		return nil, err
	}
	to, err := count(a.to)
	if err != nil {
		return nil, err
	}
	if ctx.Err() == nil {
		r.FromCounts, r.ToCounts = from, to
	}
	for i := range a.there {
		row := reports.AblationRow{}
		row.Switch, row.ToValue, _ = strings.Cut(a.there[i], "=")
		_, row.FromValue, _ = strings.Cut(a.back[i], "=")
		if row.With, err = count(a.from.with(a.there[i])); err == nil {
			row.Without, err = count(a.to.with(a.back[i]))
		}
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			break
		}
		r.Rows = append(r.Rows, row)
	}
	r.Complete = len(r.Rows) == len(a.there)
	dropEmptyColumns(r)
	return r, nil //nolint:nilerr // ctx may have ended: r says whether it is complete
}

// violating counts the schedules that violate each invariant, by the kind of the request and in the
// order of the catalogue.
func violating(ctx context.Context, spec Spec, o Options) ([]uint64, error) {
	o.Progress = nil
	s, err := Explore(spec, o)
	if err != nil {
		return nil, err
	}
	c := s.Run(ctx)
	if len(c.Troubles) > 0 && ctx.Err() == nil {
		return nil, fmt.Errorf("policy %s, seed %d: %s", spec, c.Troubles[0].Seed, c.Troubles[0].Sentence)
	}
	var all []uint64
	for _, i := range c.Invariants {
		for _, r := range i.Requests {
			all = append(all, r.Violated)
		}
	}
	return all, nil
}

// dropEmptyColumns names the columns, and drops those without a violation.
func dropEmptyColumns(r *reports.Ablation) {
	lists := []*[]uint64{&r.FromCounts, &r.ToCounts}
	for i := range r.Rows {
		lists = append(lists, &r.Rows[i].With, &r.Rows[i].Without)
	}
	kept := make([][]uint64, len(lists))
	column := 0
	for _, inv := range invariant.All() {
		for _, kind := range reports.RequestKinds {
			sum := uint64(0)
			for _, l := range lists {
				sum += at(*l, column)
			}
			if sum > 0 {
				r.Columns = append(r.Columns, reports.AblationColumn{Invariant: inv.Name, Grade: inv.Grade, Asked: kind})
				for i, l := range lists {
					kept[i] = append(kept[i], at(*l, column))
				}
			}
			column++
		}
	}
	for i, l := range lists {
		*l = append([]uint64{}, kept[i]...)
	}
}

// at returns a count; 0 for a list that was dropped.
func at(list []uint64, i int) uint64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}
