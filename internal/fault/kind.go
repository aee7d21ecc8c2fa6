package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/agext/levenshtein"
)

// Kind names what a fault does to a link.
type Kind string

// kind is what the fabric knows of a Kind. Each lives in a file of its own.
type kind struct {
	// takes lists the parameters, by JSON name, that mean something to the kind.
	takes []string
	// disables is true for the one kind that takes the link away as a whole, in place of adding a toxic to its streams.
	disables bool
	// check validates the parameters against each other; nil where there is nothing to check. Negative ones and those the
	// kind does not take were refused before.
	check func(Fault) error
	// sentence puts the parameters in words; nil where there are none.
	sentence func(Fault) string
	// toxic is the name and the parameters of the toxic that does it, once for each direction; nil where disables is set.
	toxic func(Fault) (string, toxics.Toxic)
	// blocks is true when no request that starts while the fault is on can be answered through the link.
	blocks bool
	// breaks is true when the toxic ends streams by itself.
	breaks bool
	// swallows is true when data that meets the toxic is lost for good, so that its connection cannot go on after it.
	swallows bool
	// bites says what counts as a connection the fault touched.
	bites bite
}

// bite is how a fault touches connections, which decides what its evidence counts.
type bite int

const (
	// bitesData: a connection is affected when it sent bytes in a direction of the fault.
	bitesData bite = iota
	// bitesEnd: a connection is affected when a stream of it ended in a direction of the fault.
	bitesEnd
	// bitesLife: a connection is touched only by being broken; those that merely live through the fault are not.
	bitesLife
)

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
	return kind{}, fmt.Errorf("unknown kind %q%s", name, suggest(string(name), known))
}

// suggest ends an error about an unknown name: with the nearest known one if a slip could have led to it, and with all of
// them otherwise.
func suggest(name string, known []string) string {
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

func (k kind) parameterList() string {
	if len(k.takes) == 0 {
		return "none"
	}
	return strings.Join(k.takes, ", ")
}

// streams are the toxiproxy streams that the fault is about.
func (f Fault) streams() []stream.Direction {
	switch f.Direction {
	case Up:
		return []stream.Direction{stream.Upstream}
	case Down:
		return []stream.Direction{stream.Downstream}
	default:
		return []stream.Direction{stream.Upstream, stream.Downstream}
	}
}

// required and whole are the two checks that most kinds share: toxiproxy counts in whole units, and a remainder would be
// dropped without a word.
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
