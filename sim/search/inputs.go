package search

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// inputSchedules is how many schedules are run for [Inputs].
const inputSchedules = 40

// Inputs is a short hash of what a comparison of the policy of a spec with the reference depends on:
// the switches of both, the schedules that the generator draws, and what the simulator makes of
// them. A table that was made of other inputs is out of date.
func Inputs(spec Spec) (string, error) {
	h := sha256.New()
	from, _, err := spec.Build()
	if err != nil {
		return "", err
	}
	for _, p := range []proxy.Policy{from, proxy.Reference()} {
		for _, sw := range switches(&p) {
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
