package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// Smallest looks for the smallest set of changes with which a policy has no core violations. It is
// to be run once.
type Smallest struct {
	spec    Spec
	to      proxy.Policy
	options Options
	changes []string // that turn the policy into the other one
	places  []place
	ground  ground

	excused map[int][]string // the core invariants that a place violates even with all changes
	failing []int            // places that failed with some set, the last one first
	found   *reports.Smallest
}

// NewSmallest prepares the search, over scenarios and over as many schedules as the options say.
// ShrinkRuns and Findings are not used.
func NewSmallest(spec Spec, to string, o Options, scenarios []scenario.Scenario) (*Smallest, error) {
	a, err := Ablate(spec, to, o)
	if err != nil {
		return nil, err
	}
	s := &Smallest{spec: spec, options: o.withDefaults(), changes: a.there, excused: map[int][]string{}}
	if s.to, _, err = a.to.Build(); err != nil {
		return nil, err
	}
	s.ground = ground{spec: spec, first: s.options.First, workers: s.options.Workers}
	for seed := range o.Seeds {
		s.places = append(s.places, place{seed: s.options.First + seed})
	}
	s.found = &reports.Smallest{
		TypeMeta: reports.OfKind(reports.SmallestKind), SkewproofVersion: o.Version, Spec: reports.SearchSpec(spec), To: to,
		Schedules: o.Seeds, FirstSeed: s.options.First, Switches: len(s.changes),
	}
	if s.found.Inputs, err = Inputs(spec); err != nil {
		return nil, err
	}
	for i := range scenarios {
		if !scenarios[i].Limits.Allows(scenario.BackendSim) {
			s.found.NotRun = append(s.found.NotRun, scenarios[i].Name)
			continue
		}
		s.places = append(s.places, place{scenario: &scenarios[i]})
		s.found.Scenarios++
	}
	return s, nil
}

// Run looks for the set. As long as a schedule violates a core invariant, Run adds the changes that
// remove this violation. Then it leaves out every change that is not needed. Progress (may be nil)
// is told what is being done. The result is deterministic unless ctx ends, which is an error.
func (s *Smallest) Run(ctx context.Context, progress func(string)) (*reports.Smallest, error) {
	say := func(format string, args ...any) {
		if progress != nil {
			progress(fmt.Sprintf(format, args...))
		}
	}
	all := make([]int, len(s.changes))
	for i := range all {
		all[i] = i
	}
	say("what is violated with all %d changes", len(all))
	if err := s.excuse(ctx, all); err != nil {
		return nil, err
	}
	var set []int
	for {
		say("%d changes: %d places to hold", len(set), len(s.places))
		at, err := s.fails(ctx, set)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			break
		}
		more, err := s.toAdd(ctx, set, at)
		if err != nil {
			return nil, err
		}
		for _, i := range more {
			say("%s for %s", s.changes[i], s.places[at])
		}
		if set = append(set, more...); len(more) == 0 {
			return nil, fmt.Errorf("no change removes what %s violates", s.places[at])
		}
		sort.Ints(set)
	}
	for i := len(set) - 1; i >= 0; i-- {
		without := slices.Delete(slices.Clone(set), i, i+1)
		say("can %s be left out?", s.changes[set[i]])
		at, err := s.fails(ctx, without)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			set = without
		}
	}
	return s.found, s.describe(ctx, set, say)
}

// excuse records the violations that remain with all changes, because no set can remove them.
func (s *Smallest) excuse(ctx context.Context, all []int) error {
	outcomes, err := s.ground.run(ctx, s.with(all), s.places, false)
	if err != nil {
		return err
	}
	var run []place
	for i, o := range outcomes {
		switch {
		case o.err != "" && s.places[i].scenario == nil:
			return fmt.Errorf("%s: %s", s.places[i], o.err)
		case o.err != "":
			s.found.NotRun = append(s.found.NotRun, s.places[i].scenario.Name)
			s.found.Scenarios--
			continue
		case len(o.violated) > 0:
			s.excused[len(run)] = o.violated
			s.found.Left = append(s.found.Left, fmt.Sprintf("%s: %s", s.places[i], o.violated[0]))
		}
		run = append(run, s.places[i])
	}
	s.places = run
	return nil
}

// fails returns the first place at which a set of changes leaves a core violation that all changes
// together remove; -1 if there is none. It tries places at which other sets failed first, because
// most sets fail there.
func (s *Smallest) fails(ctx context.Context, set []int) (int, error) {
	var before []place
	for _, i := range s.failing {
		before = append(before, s.places[i])
	}
	outcomes, err := s.ground.run(ctx, s.with(set), before, false)
	if err != nil {
		return 0, err
	}
	for n, o := range outcomes {
		if s.violates(s.failing[n], o) {
			return s.failing[n], nil
		}
	}
	const part = 256
	for from := 0; from < len(s.places); from += part {
		outcomes, err := s.ground.run(ctx, s.with(set), s.places[from:min(from+part, len(s.places))], false)
		if err != nil {
			return 0, err
		}
		for n, o := range outcomes {
			if at := from + n; s.violates(at, o) {
				s.failing = slices.Insert(s.failing, 0, at)
				return at, nil
			}
		}
	}
	return -1, nil
}

func (s *Smallest) violates(at int, o outcome) bool {
	return slices.ContainsFunc(o.violated, func(name string) bool { return !slices.Contains(s.excused[at], name) })
}

// toAdd returns the changes that remove the violations of a place under a set. A single change that
// removes them is preferred. Among several single changes, toAdd prefers the one with which the
// fewest places that failed so far fail.
func (s *Smallest) toAdd(ctx context.Context, set []int, at int) ([]int, error) {
	var rest []int
	for i := range s.changes {
		if !slices.Contains(set, i) {
			rest = append(rest, i)
		}
	}
	near := true
	removes := func(more []int) (bool, error) {
		outcomes, err := s.ground.run(ctx, s.with(slices.Concat(set, more)), s.places[at:at+1], near)
		return err == nil && !s.violates(at, outcomes[0]), err
	}
	if all, err := removes(rest); err != nil {
		return nil, err
	} else if !all { // on other tapes some violation remains with every change, so use only the place's own tape
		near = false
	}
	best, fewest := []int(nil), len(s.places)+1
	for _, i := range rest {
		removed, err := removes([]int{i})
		if err != nil {
			return nil, err
		}
		if !removed {
			continue
		}
		sample := s.places[:min(len(s.places), probing)]
		outcomes, err := s.ground.run(ctx, s.with(append(slices.Clone(set), i)), sample, false)
		if err != nil {
			return nil, err
		}
		left := 0
		for n, o := range outcomes {
			if s.violates(n, o) {
				left++
			}
		}
		if left < fewest {
			best, fewest = []int{i}, left
		}
	}
	if best != nil {
		return best, nil
	}
	return leaveOut(rest, removes)
}

// probing is the number of schedules that are run to compare several changes.
const probing = 300

// with returns the spec with a set of changes.
func (s *Smallest) with(set []int) Spec {
	spec := s.spec
	for _, i := range set {
		spec = spec.with(s.changes[i])
	}
	return spec
}

// describe fills in, for each change of the set, why it is needed and what it costs.
func (s *Smallest) describe(ctx context.Context, set []int, say func(string, ...any)) error {
	before, err := s.ground.costs(ctx, s.spec, s.places)
	if err != nil {
		return err
	}
	for n, i := range set {
		say("what %s is needed for", s.changes[i])
		row := reports.SmallestRow{Change: s.changes[i]}
		spec := s.with(slices.Delete(slices.Clone(set), n, n+1))
		schedules := slices.DeleteFunc(slices.Clone(s.places), func(p place) bool { return p.scenario != nil })
		outcomes, err := s.ground.run(ctx, spec, schedules, false)
		if err != nil {
			return err
		}
		count := map[string]uint64{}
		for at, o := range outcomes {
			if s.violates(at, o) {
				row.Schedules++
				for _, name := range o.violated {
					count[name]++
				}
			}
		}
		for _, inv := range invariant.All() {
			if count[inv.Name] > 0 {
				row.Violated = append(row.Violated, reports.SmallestCount{Invariant: inv.Name, Schedules: count[inv.Name]})
			}
		}
		for _, at := range s.failing {
			if s.places[at].scenario == nil {
				continue
			}
			outcomes, err := s.ground.run(ctx, spec, s.places[at:at+1], false)
			if err != nil {
				return err
			}
			if s.violates(at, outcomes[0]) {
				row.Scenarios = append(row.Scenarios, s.places[at].scenario.Name)
			}
		}
		slices.Sort(row.Scenarios)
		after, err := s.ground.costs(ctx, s.spec.with(s.changes[i]), s.places)
		if err != nil {
			return err
		}
		row.Costs = after.over(before)
		s.found.Rows = append(s.found.Rows, row)
	}
	after, err := s.ground.costs(ctx, s.with(set), s.places)
	if err != nil {
		return err
	}
	s.found.Costs = after.over(before)
	return nil
}

// place is a schedule or a scenario.
type place struct {
	seed     uint64
	scenario *scenario.Scenario
}

// String names the place.
func (p place) String() string {
	if p.scenario != nil {
		return "scenario " + p.scenario.Name
	}
	return fmt.Sprintf("seed %d", p.seed)
}

// outcome is the result of a place.
type outcome struct {
	violated []string // core invariants
	err      string   // the place could not be carried out
}

var errEnded = errors.New("it was ended early")

// nearTapes are the tapes on which a place is run, to see whether a change removes a violation
// there or only moves it.
func (p place) nearTapes() []*tape.Tape {
	own := tape.Seeded(p.seed)
	if p.scenario != nil {
		return []*tape.Tape{own}
	}
	all := []*tape.Tape{own}
	for n := range uint64(nearSchedules / 2) {
		all = append(all, tape.Seeded(p.seed+(n+1)<<48))
	}
	return all
}

// sees returns the core invariants that a result violates.
func sees(r *sim.Result) (violated []string) {
	for _, v := range invariant.Judge(r.History) {
		if v.Outcome == invariant.OutcomeFail && v.Grade == invariant.GradeCore {
			violated = append(violated, v.Name)
		}
	}
	return violated
}
