package mutants

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
	"github.com/skewproof/skewproof/sim/tape"
)

// spec describes the searched control planes: two versions, with resources that only one of them
// serves, resources whose subresources differ, and resources that are the same in both.
var spec = search.Spec{Policy: "reference", From: "v1.36.3", To: "v1.37.1", Servers: 3, Resources: 6}

// hunter runs random schedules on a control plane with a mutant. If a schedule breaks an invariant,
// hunter also runs it on a control plane without the mutant.
type hunter struct {
	cases          *search.Generator
	mutated, sound *sim.Simulator
	planted        bool
	acted          int // number of times that the planted defect made a difference
}

func newHunter(m mutant) (*hunter, error) {
	h := &hunter{}
	spec := spec
	spec.Resources = max(spec.Resources, m.resources)
	var err error
	if h.cases, err = search.NewGenerator(spec); err != nil {
		return nil, err
	}
	setup, err := spec.Setup()
	if err != nil {
		return nil, err
	}
	h.sound = sim.New(setup)
	changed := spec
	changed.Changes = m.changes
	if setup, err = changed.Setup(); err != nil {
		return nil, err
	}
	acted := func() { h.acted++ }
	if h.planted = m.plant != nil; h.planted {
		setup.Defects = m.plant(acted)
	}
	if m.setup != nil {
		setup = m.setup(setup, acted)
	}
	h.mutated = sim.New(setup)
	return h, nil
}

func (h *hunter) close() {
	h.mutated.Close()
	h.sound.Close()
}

// finding says how a mutant was found.
type finding struct {
	seed uint64
	// schedules is the number of schedules tried, including the last one, which found the mutant.
	schedules int
	// by are the verdicts caused by the mutant, in the order of the catalogue.
	by []invariant.Verdict
}

func isCore(v invariant.Verdict) bool { return v.Grade == invariant.GradeCore }

// A planted defect shifts the choices of delays. So the result of a schedule may differ by chance:
// without the mutant, too, an invariant may be broken on one tape and not on another. Therefore the
// mutant is to blame for a broken invariant only if the invariant holds without the mutant, on the
// same schedule with a few other tapes. The reference policy may break an extended invariant. Such
// an invariant must hold on many tapes without the mutant, and must be broken again on some of
// these tapes with the mutant.
const (
	fewTapes  = 4
	manyTapes = 16
	brokenOn  = 4
)

// hunt tries at most a number of schedules, with the seeds from first on. It returns nil if no
// schedule finds the mutant.
func (h *hunter) hunt(first uint64, most int) (*finding, error) {
	for i := range most {
		seed, before := first+uint64(i), h.acted
		c, own := h.cases.Case(seed)
		broken, err := judge(h.mutated, c, own)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		if len(broken) == 0 || h.planted && h.acted == before {
			continue
		}
		if broken, err = h.blame(c, seed, broken); err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		if len(broken) > 0 {
			return &finding{seed, i + 1, broken}, nil
		}
	}
	return nil, nil
}

// blame returns the broken invariants for which the mutant is to blame. If core invariants are
// among them, it returns only these.
func (h *hunter) blame(c *sim.Case, seed uint64, broken []invariant.Verdict) ([]invariant.Verdict, error) {
	for n := 0; n <= manyTapes && len(broken) > 0; n++ {
		if n > fewTapes && slices.ContainsFunc(broken, isCore) {
			return slices.DeleteFunc(broken, func(v invariant.Verdict) bool { return !isCore(v) }), nil
		}
		without, err := judge(h.sound, c, another(seed, n))
		if err != nil {
			return nil, err
		}
		broken = slices.DeleteFunc(broken, func(v invariant.Verdict) bool { return names(v, without) })
	}
	again := map[string]int{}
	for n := 1; n <= manyTapes && len(broken) > 0; n++ {
		with, err := judge(h.mutated, c, another(seed, n))
		if err != nil {
			return nil, err
		}
		for _, v := range with {
			again[v.Name]++
		}
	}
	return slices.DeleteFunc(broken, func(v invariant.Verdict) bool { return again[v.Name] < brokenOn }), nil
}

func names(v invariant.Verdict, all []invariant.Verdict) bool {
	return slices.ContainsFunc(all, func(o invariant.Verdict) bool { return o.Name == v.Name })
}

// another is the n-th tape for the case of a seed; 0 is its own.
func another(seed uint64, n int) *tape.Tape { return tape.Seeded(seed + uint64(n)<<48) }

// judge runs a case and returns the verdicts of the broken invariants.
func judge(s *sim.Simulator, c *sim.Case, t *tape.Tape) ([]invariant.Verdict, error) {
	result, err := s.Run(c, t, sim.Options{})
	if err != nil {
		return nil, err
	}
	verdicts := invariant.Judge(result.History)
	return slices.DeleteFunc(verdicts, func(v invariant.Verdict) bool { return v.Outcome != invariant.OutcomeFail }), nil
}
