package invariant

import (
	"fmt"
	"strings"
)

// Excuses says for people why a ruling on a request may be missing ([reason]).
const Excuses = "the server was not ready, the load canceled the request, a fault of the run was in the way, or knowledge was still " +
	"allowed to spread"

// needs names the classes of requests, objects or events of which a scenario may demand a number
// before a verdict on this invariant counts.
func (i Invariant) needs() (classes []string) {
	for _, p := range append([]pressure{operations}, i.pressure...) {
		classes = append(classes, p.what)
	}
	return classes
}

// Doubts says for people why a verdict on this invariant can be inconclusive.
func (i Invariant) Doubts() []string {
	doubts := []string{
		"no request of the run tests it",
		"the ground truth is unknown for more than half of the requests in question",
		"the scenario tests it, and the run had fewer of these than the scenario demands: " + strings.Join(i.needs(), ", "),
		"the scenario tests it, and a fault had no effect",
		"wrong answers came only while the machine was overloaded",
		"the history of the run was cut short",
	}
	if i.answers != nil {
		doubts = append(doubts, fmt.Sprintf("no invariant rules on %d %% or more, and at least %d, of the requests of a class that had to be "+
			"passed on", mostUnruled, leastUnruled))
	}
	return doubts
}

// Unruled says for people on which requests that have to be passed on the invariant does not rule.
// It is empty if the invariant is not about such requests.
func (i Invariant) Unruled() (reasons []string) {
	if i.unknown != "" {
		reasons = append(reasons, i.unknown)
	}
	if i.answers != nil || i.unknown != "" {
		reasons = append(reasons, Excuses)
	}
	return reasons
}
