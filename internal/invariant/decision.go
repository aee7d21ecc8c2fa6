package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// Decision is what the catalogue says about one operation.
type Decision struct {
	Operation *history.Operation
	// Wrong are the signatures of the violations that the operation shows, without repetition.
	Wrong []Signature
	// Undecided says why no invariant ruled on the operation, or, if it had to be passed on, on its
	// whole answer. It is empty if some invariant did, or if the operation is wrong.
	Undecided string
}

// Decide judges like [Judge], and also says what the catalogue decided about each operation, in the
// order of time.
func Decide(h *history.History) ([]Verdict, []Decision) {
	f := NewFacts(h)
	f.deciding = true
	verdicts, tallies := f.judge()
	judged := map[*observation]bool{} // some invariant found it right or wrong
	wrong := map[*history.Operation][]Signature{}
	for i, t := range tallies {
		for _, c := range t.rulings {
			judged[c.observation] = judged[c.observation] || c.ruling == rulingRight || c.ruling == rulingEarly
		}
		for _, b := range t.breaches {
			b.Invariant = verdicts[i].Name
			if b.op != nil && !slices.Contains(wrong[b.op], b.Signature) {
				wrong[b.op] = append(wrong[b.op], b.Signature)
			}
		}
	}
	ruled := ruledOn(All(), tallies)
	decisions := make([]Decision, len(f.observations))
	for i, o := range f.observations {
		d := Decision{Operation: o.op, Wrong: wrong[o.op]}
		span, whole := o.asked.line.during(o.window)
		switch {
		case len(d.Wrong) > 0:
		case o.crosses() && !ruled[o]:
			d.Undecided = f.whyUnruled(o, "no invariant rules on such an answer").words
		case o.crosses() || judged[o]:
		case !whole || span.phase != phaseReady:
			d.Undecided = "the asked server was not ready"
		default:
			d.Undecided = "no invariant rules on such a request"
		}
		decisions[i] = d
	}
	for _, op := range f.impossible.operations {
		decisions = append(decisions, Decision{Operation: op, Undecided: "its record cannot be"})
	}
	slices.SortStableFunc(decisions, func(a, b Decision) int { return operationOrder(a.Operation, b.Operation) })
	return verdicts, decisions
}
