// Package fault describes faults of links as plain data: the parameters of each kind, its words,
// and its effect. It opens no socket: internal/fabric injects faults by toxiproxy, and sim in
// virtual time.
package fault

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// These are the names of link ends that are not servers.
const (
	// Client is the source of every connection that comes from no known server.
	Client = "client"
	// Etcd is the destination that only servers have links to.
	Etcd = "etcd"
	// Any stands, as From or To, for every server except the one at the other end. A fault with Any
	// cannot be injected, because a fault names one link.
	Any = "*"
)

// Direction is the byte stream of a link on which a fault acts. The zero value means both.
type Direction string

// These are the directions of a link. Up runs from the side that dialled (From) to the other (To).
const (
	Both Direction = "both"
	Up   Direction = "up"
	Down Direction = "down"
)

// Fault is a fault to inject, as plain data without any run. Each [Kind] rejects parameters that
// would have no effect on it. In JSON durations are nanoseconds.
type Fault struct {
	Kind Kind `json:"kind"`
	// From names the side that dials: a server, or "client".
	From string `json:"from"`
	// To names the side that is dialled: a server, or "etcd".
	To string `json:"to"`
	// Direction is the stream on which the fault acts; empty means both. A cut has none.
	Direction Direction `json:"direction,omitempty"`

	// Latency is added to every chunk of data; whole milliseconds. (latency)
	Latency time.Duration `json:"latency,omitempty"`
	// Jitter varies Latency by up to this much; whole milliseconds, at most Latency. (latency)
	Jitter time.Duration `json:"jitter,omitempty"`
	// After is the time until the connection is broken, in whole milliseconds. For timeout it
	// counts from the last data of a stream, or from the time when the connection met the fault
	// (0: never), for reset from the first data. (timeout, reset)
	After time.Duration `json:"after,omitempty"`
	// Delay is the time for which the end of a stream is held back, in whole milliseconds, or the
	// pause after each slice, in whole microseconds. (slow-close, slicer)
	Delay time.Duration `json:"delay,omitempty"`
	// Rate is in bytes per second, a multiple of 1000. (bandwidth)
	Rate int64 `json:"rate,omitempty"`
	// Bytes is the number of bytes that each stream may carry before its connection is closed.
	// (limit-data)
	Bytes int64 `json:"bytes,omitempty"`
	// Size is the average size of a slice in bytes. (slicer)
	Size int64 `json:"size,omitempty"`
	// Variation is the maximum difference between a slice and Size, in bytes; less than Size.
	// (slicer)
	Variation int64 `json:"variation,omitempty"`
}

// Validate reports all errors in the fault itself. Inject reports whether the link exists.
func (f Fault) Validate() error {
	k, err := lookup(f.Kind)
	if err != nil {
		return fmt.Errorf("fault %s: %w", f.ends(), err)
	}
	var errs []error
	if f.From == "" {
		errs = append(errs, fmt.Errorf("from is missing: name a server or %q", Client))
	}
	if f.To == "" {
		errs = append(errs, fmt.Errorf("to is missing: name a server or %q", Etcd))
	}
	switch f.Direction {
	case "":
	case Both, Up, Down:
		if k.Disables {
			errs = append(errs, fmt.Errorf("%s has no direction, it breaks both: leave direction %q out", f.Kind, f.Direction))
		}
	default:
		errs = append(errs, fmt.Errorf("unknown direction %q: use %q, %q or %q", f.Direction, Both, Up, Down))
	}
	set := f.parameters()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		switch {
		case !slices.Contains(k.takes, name):
			errs = append(errs, fmt.Errorf("%s takes no parameter %q: it takes %s", f.Kind, name, cmp.Or(strings.Join(k.takes, ", "), "none")))
		case set[name] < 0:
			errs = append(errs, fmt.Errorf("parameter %q is negative (%d)", name, set[name]))
		}
	}
	if len(errs) == 0 && k.check != nil {
		errs = append(errs, k.check(f))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("fault %s %s: %w", f.Kind, f.ends(), err)
	}
	return nil
}

// parameters returns the parameters that are not zero, by their JSON names.
func (f Fault) parameters() map[string]int64 {
	set := map[string]int64{
		"latency": int64(f.Latency), "jitter": int64(f.Jitter), "after": int64(f.After), "delay": int64(f.Delay),
		"rate": f.Rate, "bytes": f.Bytes, "size": f.Size, "variation": f.Variation,
	}
	maps.DeleteFunc(set, func(_ string, v int64) bool { return v == 0 })
	return set
}

// String describes the fault in a sentence for people: "latency 200ms ±50ms downstream, a→b".
func (f Fault) String() string { return f.Detail() + ", " + f.ends() }

// Detail returns the sentence without the link: "latency 200ms ±50ms downstream".
func (f Fault) Detail() string {
	k, err := lookup(f.Kind)
	if err != nil {
		return strconv.Quote(string(f.Kind))
	}
	words := []string{string(f.Kind)}
	if k.sentence != nil {
		if s := k.sentence(f); s != "" {
			words = append(words, s)
		}
	}
	switch f.Direction {
	case Up:
		words = append(words, "upstream")
	case Down:
		words = append(words, "downstream")
	}
	return strings.Join(words, " ")
}

// Blocks reports whether no request that starts during the fault can be answered through the link.
func (f Fault) Blocks() bool { return kinds[f.Kind].blocks }

func (f Fault) ends() string { return f.From + "→" + f.To }
