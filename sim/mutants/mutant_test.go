package mutants

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// mutant is a defect that is planted in a control plane that otherwise follows the reference
// policy.
type mutant struct {
	// part is the part of the proxy or server with the defect, and name is the name in the table.
	part, name string
	// wrong describes the defect in a sentence.
	wrong string
	// changes are switches of the policy, for a mutant that turns one of them against KEP-4020.
	changes []string
	// plant returns new hooks that make the defect; nil for a mutant of the policy. The hooks call
	// acted whenever the defect makes a difference.
	plant func(acted func()) sim.Defects
	// setup changes the simulated servers themselves, for defects that no hook can make; nil for no
	// change.
	setup func(setup sim.Setup, acted func()) sim.Setup
	// resources is the number of resources that the defect needs to make a difference; 0 means no
	// more than usual.
	resources int
	// blind is the reason why no invariant finds the mutant; empty if one does.
	blind string
	// first is the first seed of the search; 0 means firstSeed.
	first uint64
	// rare is true if finding the mutant takes more schedules than a quick test has time for.
	rare bool
}

// begin returns the first seed of the search for a mutant.
func (m mutant) begin() uint64 { return cmp.Or(m.first, *from) }

// catalogue lists all mutants that the search finds.
func catalogue() []mutant {
	return slices.Concat(statuses, hops, knowledge, documents, transports, identities, failovers, servers)
}

// lives keeps a value for the present process of each server. The Local hook is called when a
// process begins, and then begin resets the value.
type lives[T any] map[proxy.ServerID]*T

func (l lives[T]) begin(self proxy.ServerID, h http.Handler) http.Handler {
	l[self] = new(T)
	return h
}

// fromPeer reports whether a peer forwarded the request. Only peers name the user; no client of the
// simulator does.
func fromPeer(r *http.Request) bool { return r.Header.Get(userHeader) != "" }

const userHeader = "X-Remote-User"
