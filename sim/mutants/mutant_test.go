package mutants

import (
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// mutant is a defect that is planted in a control plane that otherwise follows the reference
// policy.
type mutant struct {
	// part is what it is a defect of, name what it is called in the table.
	part, name string
	// wrong says in a sentence what is wrong.
	wrong string
	// changes are switches of the policy, of a mutant that is one of those turned against KEP-4020.
	changes []string
	// plant returns the hooks that make the defect, with nothing remembered; nil for one of the
	// policy. acted is to be called whenever the defect makes a difference to something.
	plant func(acted func()) sim.Defects
	// setup changes the simulated servers themselves, where no hook reaches; nil for nothing.
	setup func(setup sim.Setup, acted func()) sim.Setup
	// resources is how many it takes for the defect to make a difference; 0: no more than usual.
	resources int
	// blind is why nothing notices it; empty for one that is found.
	blind string
	// rare is true for one that takes more schedules than a quick test has time for.
	rare bool
}

// catalogue lists all mutants that are found.
func catalogue() []mutant {
	return slices.Concat(statuses, hops, knowledge, documents, transports, identities, streams, failovers, servers)
}

// lives keeps something for the present process of each server. The hook that is put around the
// local server is called when a process begins.
type lives[T any] map[proxy.ServerID]*T

func (l lives[T]) begin(self proxy.ServerID, h http.Handler) http.Handler {
	l[self] = new(T)
	return h
}

// fromPeer reports whether a peer passed the request on: no client of the simulator says for whom
// it asks.
func fromPeer(r *http.Request) bool { return r.Header.Get(userHeader) != "" }

const userHeader = "X-Remote-User"
