package search

import (
	"slices"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// candidate is a case that may be smaller and show the same violation.
type candidate struct {
	spec Spec
	sim.Case
	tape [tape.Streams][]uint32
}

// clone copies what shrinking changes.
func clone(c sim.Case) sim.Case {
	c.Servers, c.Steps, c.Requests = slices.Clone(c.Servers), slices.Clone(c.Steps), slices.Clone(c.Requests)
	for i := range c.Steps {
		if f := c.Steps[i].Fault; f != nil {
			copied := *f
			c.Steps[i].Fault = &copied
		}
		if d := c.Steps[i].Definition; d != nil {
			copied := *d
			c.Steps[i].Definition = &copied
		}
	}
	return c
}

// drop removes the steps for which out is true, and those that are not possible without them: a heal without its fault, a start of a server that
// runs. Requests keep their place among the other steps.
func (c *candidate) drop(out func(i int) bool) {
	state := scenario.NewState(c.Servers)
	kept := c.Steps[:0:0]
	place := make([]int, len(c.Steps)+1) // the new step of a request, by its old step
	for i, s := range c.Steps {
		if !out(i) && state.Apply(s) == nil {
			kept = append(kept, s)
		}
		place[i+1] = len(kept)
	}
	c.Steps = kept
	for i := range c.Requests {
		c.Requests[i].Step = place[c.Requests[i].Step]
	}
}

// leave removes a server with its steps and requests.
func (c *candidate) leave(name string) {
	c.Servers = slices.DeleteFunc(c.Servers, func(s scenario.Server) bool { return s.Name == name })
	c.Requests = slices.DeleteFunc(c.Requests, func(r sim.Request) bool { return r.Server == name })
	steps := c.Steps
	c.drop(func(i int) bool {
		s := steps[i]
		return s.Server == name || s.Fault != nil && (s.Fault.From == name || s.Fault.To == name)
	})
	c.spec.Servers = len(c.Servers)
}
