package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agext/levenshtein"
)

// Kind names the action of a fault on a link. Each kind is one file of this package, with its
// parameters, its sentence, its [Effect] and its [Toxic]. The fabric and the simulator carry faults
// out.
type Kind string

// kind is the implementation of a Kind.
type kind struct {
	// takes lists the parameters of the kind, by JSON name.
	takes []string
	// check validates the parameters; nil accepts all. No parameter is negative or belongs to
	// another kind only.
	check func(Fault) error
	// sentence describes the parameters in words; nil if the kind has none.
	sentence func(Fault) string
	// toxic returns the toxic for each stream; nil if Effect.Disables is set.
	toxic func(Fault) Toxic
	// blocks is true if no request that starts during the fault can be answered.
	blocks bool
	Effect
}

// Effect is the effect of a kind on a link and its connections. The zero value only delays data.
type Effect struct {
	// Disables is true for the one kind that takes the whole link down, without a toxic.
	Disables bool
	// Breaks is true if the toxic ends streams by itself.
	Breaks bool
	// Swallows is true if the toxic loses data for good, so that the connection cannot continue.
	Swallows bool
	// Affects says which connections count as affected by the fault.
	Affects Affected
}

// Affected says which connections a fault affects. The evidence of the fault counts these.
type Affected int

// These are the sets of connections that a fault can affect.
const (
	WhatSends  Affected = iota // connections that sent bytes in a direction of the fault
	WhatEnds                   // connections with a stream that ended in a direction of the fault
	WhatBreaks                 // only connections that the fault broke
)

// Toxic is the toxic of a fault in one stream of a link, in the form of toxiproxy's HTTP API.
// Attributes are numbers by JSON name, in toxiproxy's units.
type Toxic struct {
	Type       string
	Attributes map[string]int64
}

// Effect returns the effect of a fault of this kind on its link; the zero value for an unknown
// kind.
func (k Kind) Effect() Effect { return kinds[k].Effect }

// Toxic returns the toxic of a valid fault whose kind does not disable its link.
func (f Fault) Toxic() Toxic { return kinds[f.Kind].toxic(f) }

// Excludes reports whether two faults cannot be active at the same time: they act on the same
// stream of the same link, and one of them ends streams by itself. To heal the first one, toxiproxy
// would have to remove the second one and add it again. In that time, data would pass.
func (f Fault) Excludes(other Fault) bool {
	one, two := kinds[f.Kind], kinds[other.Kind]
	sameLink := f.From == other.From && f.To == other.To
	sameStream := f.Direction == other.Direction || f.both() || other.both()
	return sameLink && sameStream && (one.Breaks || two.Breaks) && !one.Disables && !two.Disables
}

// Breaking reports whether the toxics of a type end streams by themselves.
func Breaking(toxicType string) bool {
	for _, k := range kinds {
		if k.Breaks && k.toxic(Fault{}).Type == toxicType {
			return true
		}
	}
	return false
}

func (f Fault) both() bool { return f.Direction == "" || f.Direction == Both }

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

// Suggest returns the end of an error about an unknown name. It is the nearest known name if the
// user may have mistyped it, and otherwise all names. It is empty if no name is known.
func Suggest(name string, known []string) string {
	if nearest := Nearest(name, known); nearest != "" || len(known) == 0 {
		return nearest
	}
	return ": use one of " + strings.Join(known, ", ")
}

// Nearest returns the end of an error about an unknown name, if the user may have mistyped one of
// the known names. Otherwise it is empty.
func Nearest(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	nearest := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.Distance(name, a, nil) - levenshtein.Distance(name, b, nil)
	})
	if d := levenshtein.Distance(name, nearest, nil); d >= len(nearest) || d > max(2, len(nearest)/3) {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", nearest)
}

// required checks that a parameter is set.
func required[N ~int64](parameter string, v N) error {
	if v == 0 {
		return fmt.Errorf("parameter %q is missing", parameter)
	}
	return nil
}

// whole checks that a duration has no part smaller than toxiproxy's unit, which toxiproxy would
// drop silently.
func whole(parameter string, d, unit time.Duration) error {
	if d%unit != 0 {
		return fmt.Errorf("parameter %q is %s: toxiproxy counts in whole units of %s", parameter, d, unit)
	}
	return nil
}
