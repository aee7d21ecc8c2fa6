package search

import (
	"slices"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
)

// drop leaves out the steps that out says, and those that make no sense without them: a heal without its fault, a start of what runs. Requests
// keep their place among the steps that are left.
func (c *candidate) drop(out func(i int) bool) {
	state := scenario.NewState(c.Servers)
	kept := c.Steps[:0:0]
	place := make([]int, len(c.Steps)+1) // where a request goes, by where it was
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

// leave does without a server and all that is about it.
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
