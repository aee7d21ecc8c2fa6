package search

import (
	"context"

	"github.com/skewproof/skewproof/sim"
)

// Smaller looks for fewer and simpler steps of a case, as [Shrink] does, where shows says whether a
// case still shows what it is about. It ends after so many calls of shows, or with ctx. Servers and
// waits stay.
func Smaller(ctx context.Context, c sim.Case, runs int, shows func(sim.Case) bool) sim.Case {
	s := &shrinker{ctx: ctx, shows: shows, left: runs, best: candidate{Case: clone(c)}}
	for smaller := true; smaller && s.left > 0; {
		before := s.taken
		s.shrinkSteps()
		s.plainSteps()
		smaller = s.taken > before
	}
	return s.best.Case
}
