package invariant

import (
	"fmt"
	"iter"

	"github.com/skewproof/skewproof/internal/history"
)

// accounted are the observations with the servers' own accounts of them. Two operations of one ID are left out: their hops cannot be told apart.
func (f *Facts) accounted() iter.Seq2[*observation, []history.Hop] {
	return func(yield func(*observation, []history.Hop) bool) {
		for _, o := range f.observations {
			if f.byID[o.op.ID] == o && !yield(o, f.hops[o.op.ID]) {
				return
			}
		}
	}
}

// violateOnTheWay notes a violation in how a request was handled: what happened to it on its route.
func (f *Facts) violateOnTheWay(t *tally, o *observation, route func() string, cause, what string) {
	t.violation(signature{o.op.Server, "", cause}, o.op.End, o.resource.name(), func() Evidence {
		e := f.show(o, o.situation, answer(o.op))
		e.Sentence = fmt.Sprintf("%s was asked at %s by %s: %s. The request was handled by %s: %s.",
			o.op.Server, clock(o.op.Start), user(o.op), request(o.op), route(), what)
		return e
	})
}

func user(op *history.Operation) string {
	if op.User == "" {
		return "somebody"
	}
	return op.User
}
