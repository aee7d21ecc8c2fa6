package fault

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse parses a fault as users write it: KIND FROM TO, and then parameters by their JSON names,
// such as latency=200ms, rate=16000 or direction=up. Each parameter may be given once. The result
// is valid ([Fault.Validate]).
func Parse(words []string) (Fault, error) {
	line := strings.Join(words, " ")
	if len(words) > 0 {
		if _, err := lookup(Kind(words[0])); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", line, err)
		}
	}
	if len(words) < 3 {
		return Fault{}, fmt.Errorf("fault %q: write KIND FROM TO [PARAMETER=VALUE …], such as: %s b a", line, Cut)
	}
	f := Fault{Kind: Kind(words[0]), From: words[1], To: words[2]}
	given := map[string]bool{}
	for _, word := range words[3:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok || value == "" {
			return Fault{}, fmt.Errorf("fault %q: %q is not a parameter: write it as NAME=VALUE", line, word)
		}
		if given[name] {
			return Fault{}, fmt.Errorf("fault %q: parameter %q is given twice", line, name)
		}
		given[name] = true
		if err := f.set(name, value); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", line, err)
		}
	}
	return f, f.Validate()
}

// set parses a parameter by its JSON name.
func (f *Fault) set(name, value string) (err error) {
	durations := map[string]*time.Duration{"latency": &f.Latency, "jitter": &f.Jitter, "after": &f.After, "delay": &f.Delay}
	numbers := map[string]*int64{"rate": &f.Rate, "bytes": &f.Bytes, "size": &f.Size, "variation": &f.Variation}
	switch {
	case name == "direction":
		f.Direction = Direction(value) // no check here: Validate checks it
	case durations[name] != nil:
		if *durations[name], err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("parameter %s: %q is not a duration: write it like 200ms or 2s", name, value)
		}
	case numbers[name] != nil:
		if *numbers[name], err = strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("parameter %s: %q is not a whole number", name, value)
		}
	default:
		known := slices.Concat(slices.Collect(maps.Keys(durations)), slices.Collect(maps.Keys(numbers)), []string{"direction"})
		slices.Sort(known)
		return fmt.Errorf("unknown parameter %q%s", name, Suggest(name, known))
	}
	return nil
}
