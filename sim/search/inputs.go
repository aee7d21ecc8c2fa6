package search

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// inputSchedules is the number of schedules that are run for [Inputs].
const inputSchedules = 40

// Inputs returns a short hash of everything on which a comparison of the spec's policy with the
// reference depends: the switches of both policies, the schedules from the generator, and the
// simulator's results for them. If the hash of a table is another one, the table is out of date.
func Inputs(spec Spec) (string, error) {
	h := sha256.New()
	from, _, err := spec.Build()
	if err != nil {
		return "", err
	}
	for _, p := range []proxy.Policy{from, proxy.Reference()} {
		for _, sw := range p.Switches() {
			fmt.Fprintf(h, "%s=%s\n", sw.Name, sw)
		}
	}
	reference := spec
	reference.Policy, reference.Changes = proxy.Reference().Name, nil
	for _, spec := range []Spec{spec, reference} {
		cases, err := NewGenerator(spec)
		if err != nil {
			return "", err
		}
		simulator, err := newSimulator(spec)
		if err != nil {
			return "", err
		}
		for seed := range uint64(inputSchedules) {
			c, t := cases.Case(seed)
			result, err := simulator.Run(c, t, sim.Options{})
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%x\n", result.Hash)
		}
		simulator.Close()
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
