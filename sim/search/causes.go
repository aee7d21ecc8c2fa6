package search

import (
	"context"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// DefaultCauseRuns is the default maximum number of runs to find the cause of one violation. To try
// all pairs of switches of 1.37 takes some 1,500.
const DefaultCauseRuns = 6000

// These are numbers about near schedules, which are small variations of one schedule. They are
// needed because a switch that only changes the times of events may remove a violation from the
// schedule itself, and the violation then appears at other times.
const (
	nearSchedules = 16 // in addition to the schedule itself
	fewestShown   = 3  // of these and the schedule itself: if fewer show the violation, the near schedules prove nothing
)

// Removal finds out by experiment which switches remove the violation want from a case, when they
// are set as in the reference. It returns the smallest sets of up to two switches. If there are
// none, it returns one set from which no switch can be left out. It ends after the given number of
// runs, or with ctx. The result is deterministic unless ctx ends.
func Removal(
	ctx context.Context, spec Spec, c sim.Case, on [tape.Streams][]uint32, want reports.CampaignFinding, known findings.Catalogue, runs int,
) (*reports.Removal, error) {
	r := &remover{ctx: ctx, spec: spec, want: want, known: known, left: runs, tried: map[string]bool{}}
	to := proxy.Reference()
	var err error
	if r.invariant, err = invariantNamed(want.Invariant); err != nil {
		return nil, err
	}
	from, feature, err := spec.Build()
	if err != nil {
		return nil, err
	}
	found := &reports.Removal{To: to.Name}
	if !feature {
		found.Unknown = "the policy has no switches, because the feature is off"
		return found, nil
	}
	r.changes = proxy.Differences(from, to)
	r.near = near(c, on)
	found.Schedules = len(r.near)
	if found.Shown, err = r.baseline(); err != nil {
		return nil, err
	}
	switch {
	case r.ended():
		found.Unknown = "the search for them was ended early"
	case found.Shown < fewestShown:
		found.Unknown = "hardly any schedule near this one shows it"
	default:
		if found.Sets, found.Smallest, err = r.search(); err != nil {
			return nil, err
		}
		if r.ended() {
			found.Sets, found.Smallest, found.Unknown = nil, false, "the search for them was ended early"
		}
	}
	return found, nil
}

// remover tries sets of changes on schedules near one.
type remover struct {
	ctx       context.Context
	spec      Spec
	want      reports.CampaignFinding
	known     findings.Catalogue
	invariant invariant.Invariant
	changes   []string // that turn the spec's policy into the reference
	left      int      // number of runs left

	near   []nearby
	before []reports.ViolationKind // violations that the near schedules show without a change
	tried  map[string]bool         // sets that were tried, and whether they remove the violation
}

// nearby is a schedule near the examined one.
type nearby struct {
	sim.Case
	seed uint64                 // of its tape; 0 for the schedule itself,
	own  [tape.Streams][]uint32 // which runs on its own tape
}

// near returns a schedule and schedules near it: the first of these differ only in the choices of
// delays and peers, the later ones also in times.
func near(c sim.Case, on [tape.Streams][]uint32) []nearby {
	all := []nearby{{Case: c, own: on}}
	for seed := uint64(1); seed <= nearSchedules; seed++ {
		v := nearby{Case: clone(c), seed: seed}
		if seed > nearSchedules/2 {
			v.shift(tape.Seeded(seed))
		}
		all = append(all, v)
	}
	return all
}

// shift changes every time in a case by up to a quarter.
func (v *nearby) shift(t *tape.Tape) {
	shifted := func(d time.Duration) time.Duration { return d + d*time.Duration(t.Choose(tape.Faults, 9)-4)/16 }
	for i := range v.Steps {
		v.Steps[i].For = shifted(v.Steps[i].For)
	}
	for i := range v.Requests {
		v.Requests[i].After = shifted(v.Requests[i].After)
	}
}

func (v *nearby) newTape() *tape.Tape {
	if v.seed == 0 {
		return tape.Of(v.own)
	}
	return tape.Seeded(v.seed)
}

// ended reports whether there are no runs left or no time.
func (r *remover) ended() bool { return r.left <= 0 || r.ctx.Err() != nil }

// shows returns the kinds of violations of the invariant in a schedule.
func (r *remover) shows(s *sim.Simulator, v *nearby) []reports.ViolationKind {
	r.left--
	result, err := s.Run(&v.Case, v.newTape(), sim.Options{Run: r.spec.history(0)})
	if err != nil {
		return nil // a near schedule that cannot be carried out has no violations
	}
	defer s.Recycle(result)
	var kinds []reports.ViolationKind
	for _, found := range Violations(r.known, []invariant.Verdict{r.invariant.Judge(invariant.NewFacts(result.History))}) {
		kinds = append(kinds, found.ViolationKind)
	}
	return kinds
}

// baseline runs the near schedules without a change, counts those with the violation, and moves
// them to the front. Most sets do not remove the violation, and these schedules show that soonest.
func (r *remover) baseline() (shown int, err error) {
	s, err := newSimulator(r.spec)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	var telling, others []nearby
	for i := range r.near {
		kinds := r.shows(s, &r.near[i])
		for _, k := range kinds {
			if k != r.want.ViolationKind && !slices.Contains(r.before, k) {
				r.before = append(r.before, k)
			}
		}
		if slices.Contains(kinds, r.want.ViolationKind) {
			telling = append(telling, r.near[i])
		} else {
			others = append(others, r.near[i])
		}
	}
	r.near = append(telling, others...)
	return len(telling), nil
}

// removes reports whether, with the changes, no near schedule shows the violation or another
// violation of the invariant in its place.
func (r *remover) removes(set []int) (bool, error) {
	key := make([]byte, len(r.changes))
	for _, i := range set {
		key[i] = 1
	}
	if is, ok := r.tried[string(key)]; ok {
		return is, nil
	}
	spec := r.spec
	for _, i := range set {
		spec = spec.with(r.changes[i])
	}
	s, err := newSimulator(spec)
	if err != nil {
		return false, err
	}
	defer s.Close()
	for i := range r.near {
		if r.ended() {
			return false, nil
		}
		if slices.ContainsFunc(r.shows(s, &r.near[i]), func(k reports.ViolationKind) bool { return !slices.Contains(r.before, k) }) {
			r.tried[string(key)] = false
			return false, nil
		}
	}
	r.tried[string(key)] = true
	return true, nil
}

// search looks for the sets: first single changes, then pairs, then one set from which no change
// can be left out any more, starting with all changes (Zeller and Hildebrandt, "Simplifying and
// Isolating Failure-Inducing Input", 2002). smallest says whether no smaller set removes the
// violation.
func (r *remover) search() (sets [][]string, smallest bool, err error) {
	all := make([]int, len(r.changes))
	for i := range all {
		all[i] = i
	}
	try := func(set ...int) {
		if err != nil || r.ended() {
			return
		}
		var removed bool
		if removed, err = r.removes(set); removed {
			sets = append(sets, r.named(set))
		}
	}
	for i := range all {
		try(i)
	}
	for i := 0; i < len(all) && len(sets) == 0; i++ {
		for j := range i {
			try(j, i)
		}
	}
	if len(sets) > 0 || err != nil || r.ended() {
		return sets, true, err
	}
	if removed, err := r.removes(all); err != nil || !removed {
		return nil, false, err
	}
	set, err := leaveOut(all, r.removes)
	return [][]string{r.named(set)}, len(set) == 3, err
}

// leaveOut leaves out of a set what it can do without: first half of it, then a quarter, and at
// last one by one, until nothing more can be left out.
func leaveOut(set []int, enough func([]int) (bool, error)) ([]int, error) {
	for size := (len(set) + 1) / 2; size > 0; {
		smaller := false
		for from := 0; from < len(set); {
			rest := slices.Delete(slices.Clone(set), from, min(from+size, len(set)))
			is, err := enough(rest)
			if err != nil {
				return nil, err
			}
			if is {
				set, smaller = rest, true
			} else {
				from += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return set, nil
}

func (r *remover) named(set []int) []string {
	var names []string
	for _, i := range set {
		names = append(names, r.changes[i])
	}
	return names
}
