package campaign

import (
	"encoding/json"
	"fmt"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/replay"
	"github.com/skewproof/skewproof/sim/search"
)

// schedule is a schedule that may be carried out.
type schedule struct {
	seed uint64
	plan scenario.Plan
}

// chooser makes schedules from seeds, by the generator of the simulator.
type chooser struct {
	next        uint64 // the next seed
	candidates  uint64 // how many seeds there are for each schedule
	from, to    string // the oldest and the newest version
	controllers bool   // schedules start controllers
	generator   *search.Generator
}

func newChooser(spec search.Spec, first, candidates uint64, controllers bool) (*chooser, error) {
	g, err := search.NewGenerator(spec)
	return &chooser{next: first, candidates: max(candidates, 1), from: spec.From, to: spec.To, controllers: controllers, generator: g}, err
}

// of is the schedule of a seed. It depends on nothing else.
func (c *chooser) of(seed uint64) (schedule, error) {
	drawn, _ := c.generator.Case(seed)
	// The memory of the case is used again for the next one.
	encoded, err := json.Marshal(replay.ScheduleOf(drawn))
	if err != nil {
		return schedule{}, err
	}
	s := schedule{seed: seed}
	if err := json.Unmarshal(encoded, &s.plan); err != nil {
		return schedule{}, err
	}
	if c.controllers {
		control(&s.plan, seed, c.from, scenarios.Differing(c.from, c.to))
	}
	if err := s.plan.Validate(); err != nil {
		return schedule{}, fmt.Errorf("the schedule of seed %d: %w", seed, err)
	}
	return s, nil
}

// choose returns one of the schedules of the next seeds: the one that promises the most new
// situations for its duration. If several are equal, it is the first.
func (c *chooser) choose(reached Coverage) (best schedule, err error) {
	most := -1.0
	for range c.candidates {
		s, err := c.of(c.next)
		c.next++
		if err != nil {
			return schedule{}, err
		}
		if n := reached.Promise(s.plan); n > most {
			best, most = s, n
		}
	}
	return best, nil
}
