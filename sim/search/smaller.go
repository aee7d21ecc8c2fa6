package search

import (
	"context"

	"github.com/skewproof/skewproof/sim"
)

// Smaller looks for fewer and simpler steps of a case, like [Shrink]. It calls shows to find out
// whether a case still has the wanted property. It ends after the given number of these calls, or
// with ctx. Servers and waits stay unchanged.
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
