package invariant

import (
	"iter"

	"github.com/skewproof/skewproof/internal/history"
)

// Crossings yields every answered operation that had to cross, or that had to show what peers
// serve, with the classes of pressure for which it counts (see [CrossingClasses]), in time order.
func (f *Facts) Crossings() iter.Seq2[*history.Operation, []string] {
	return func(yield func(*history.Operation, []string) bool) {
		for _, o := range f.observations {
			if o.op.Status == 0 {
				continue
			}
			_, merged := f.merged(o.op)
			if !merged && !o.crosses() {
				continue
			}
			var classes []string
			for _, p := range crossingPressures {
				if p.counts(f, o) {
					classes = append(classes, p.what)
				}
			}
			if len(classes) > 0 && !yield(o.op, classes) {
				return
			}
		}
	}
}

// crossingPressures are the classes of pressure whose requests involve peers.
var crossingPressures = []pressure{
	skewed, unreachable, passedOn, writesDone, subresources, watches, upgrades, lists, formats, forgedHops, mergedDocuments,
}

// CrossingClasses are the classes that [Facts.Crossings] names, in the order in which they are
// shown.
func CrossingClasses() (all []string) {
	for _, p := range crossingPressures {
		all = append(all, p.what)
	}
	return all
}
