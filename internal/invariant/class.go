package invariant

import (
	"iter"

	"github.com/skewproof/skewproof/internal/history"
)

// Class says who could have served a request, by what the servers' own nopeer documents listed while it was under way.
type Class string

// The classes of requests.
const (
	ClassServedHere Class = "servedHere" // the server that was asked serves the resource itself
	ClassSkewed     Class = "skewed"     // it does not, while another live one does: the Mixed Version Proxy's business
	ClassUnserved   Class = "unserved"   // no live server serves it
	ClassDiscovery  Class = "discovery"  // about no resource: discovery, health
	ClassDown       Class = "down"       // the server that was asked was not running
	ClassUnknown    Class = "unknown"    // what was served changed while it was under way, or was not known
)

// Classes yields every operation of the history with its class, in time order. The operations are those of the history
// itself and must not be changed.
func (f *Facts) Classes() iter.Seq2[*history.Operation, Class] {
	return func(yield func(*history.Operation, Class) bool) {
		for _, o := range f.observations {
			if !yield(o.op, o.class()) {
				return
			}
		}
	}
}

func (o *observation) class() Class {
	span, whole := o.asked.line.during(o.window)
	switch {
	case whole && span.phase == phaseDown:
		return ClassDown
	case o.op.Verb == history.VerbDiscovery, o.op.GVR.Resource == "":
		return ClassDiscovery
	case o.local == claimYes:
		return ClassServedHere
	case o.local == claimNo && len(o.capable) > 0:
		return ClassSkewed
	case o.local == claimNo && len(o.unsure) == 0:
		return ClassUnserved
	default:
		return ClassUnknown
	}
}
