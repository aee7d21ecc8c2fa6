package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agext/levenshtein"
)

// Kind names what a fault does to a link. A kind is one file of this package: its parameters, its
// sentence, its [Effect] and its [Toxic]. The fabric and the simulator carry it out.
type Kind string

// kind is what is known of a Kind.
type kind struct {
	// takes lists the parameters, by JSON name, that mean something to the kind.
	takes []string
	// check validates the parameters, of which none is negative or foreign to the kind; nil: all
	// pass.
	check func(Fault) error
	// sentence puts the parameters in words; nil where there are none.
	sentence func(Fault) string
	// toxic is what toxiproxy does in each stream; nil where Effect.Disables is set.
	toxic func(Fault) Toxic
	// blocks is true when no request that starts during the fault can be answered.
	blocks bool
	Effect
}

// Effect is what a kind does to a link and its connections. The zero value delays data only.
type Effect struct {
	// Disables is true for the one kind that takes the whole link away, without a toxic.
	Disables bool
	// Breaks is true when the toxic ends streams by itself.
	Breaks bool
	// Swallows is true when the toxic loses data for good, so that the connection cannot go on.
	Swallows bool
	// Affects says which connections count as affected by the fault.
	Affects Affected
}

// Affected says which connections a fault affects: those that its evidence counts.
type Affected int

// The connections that a fault can affect.
const (
	WhatSends  Affected = iota // those that sent bytes in a direction of the fault
	WhatEnds                   // those of which a stream ended in a direction of the fault
	WhatBreaks                 // those that it broke, and no others
)

// Toxic is what toxiproxy does in one stream of a link, as its HTTP API takes it. Attributes are
// numbers by JSON name, in toxiproxy's units.
type Toxic struct {
	Type       string
	Attributes map[string]int64
}

// Effect says what a fault of this kind does to its link; the zero value for an unknown kind.
func (k Kind) Effect() Effect { return kinds[k].Effect }

// Toxic is the toxic of a valid fault whose kind does not disable its link.
func (f Fault) Toxic() Toxic { return kinds[f.Kind].toxic(f) }

var kinds = map[Kind]kind{
	Cut: cut, Latency: latency, Timeout: timeout, Reset: reset, Bandwidth: bandwidth, LimitData: limitData, Slicer: slicer,
	SlowClose: slowClose,
}

// Kinds lists all kinds in alphabetical order.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

func lookup(name Kind) (kind, error) {
	if k, ok := kinds[name]; ok {
		return k, nil
	}
	known := make([]string, 0, len(kinds))
	for _, k := range Kinds() {
		known = append(known, string(k))
	}
	if name == "" {
		return kind{}, fmt.Errorf("kind is missing: use one of %s", strings.Join(known, ", "))
	}
	return kind{}, fmt.Errorf("unknown kind %q%s", name, Suggest(string(name), known))
}

// Suggest ends an error about an unknown name: with the nearest known one if it may be a slip, and
// otherwise with all. It is empty if nothing is known.
func Suggest(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	nearest := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.Distance(name, a, nil) - levenshtein.Distance(name, b, nil)
	})
	if d := levenshtein.Distance(name, nearest, nil); d < len(nearest) && d <= max(2, len(nearest)/3) {
		return fmt.Sprintf(": did you mean %q?", nearest)
	}
	return ": use one of " + strings.Join(known, ", ")
}

// required and whole are the two checks that most kinds share: toxiproxy would silently drop the
// remainder of a unit.
func required[N ~int64](parameter string, v N) error {
	if v == 0 {
		return fmt.Errorf("parameter %q is missing", parameter)
	}
	return nil
}

func whole(parameter string, d, unit time.Duration) error {
	if d%unit != 0 {
		return fmt.Errorf("parameter %q is %s: toxiproxy counts in whole units of %s", parameter, d, unit)
	}
	return nil
}
