package search

import (
	"slices"

	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim"
)

// drop leaves out the steps that out says, and those that make no sense without them: a heal without its fault, a start of what runs. Requests
// keep their place among the steps that are left.
func (c *candidate) drop(out func(i int) bool) {
	r := newRehearsal(c.Servers)
	kept := c.Steps[:0:0]
	place := make([]int, len(c.Steps)+1) // where a request goes, by where it was
	for i, s := range c.Steps {
		if !out(i) && r.sensible(&s) {
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
	c.Servers = slices.DeleteFunc(c.Servers, func(s scenarios.Server) bool { return s.Name == name })
	c.Requests = slices.DeleteFunc(c.Requests, func(r sim.Request) bool { return r.Server == name })
	steps := c.Steps
	c.drop(func(i int) bool {
		s := steps[i]
		return s.Server == name || s.Fault != nil && (s.Fault.From == name || s.Fault.To == name)
	})
	c.spec.Servers = len(c.Servers)
}

// rehearsal goes through steps with the states of processes, faults and definitions that they lead to.
type rehearsal struct {
	processes map[string]processState
	labels    map[string]bool
	spoiled   map[string]bool
	defined   map[string]bool
}

func newRehearsal(servers []scenarios.Server) rehearsal {
	r := rehearsal{map[string]processState{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, s := range servers {
		r.processes[s.Name] = isRunning
	}
	return r
}

// sensible reports whether a step does anything, and takes it.
func (r *rehearsal) sensible(s *scenarios.Step) bool {
	is := r.processes[s.Server]
	next := isRunning
	switch s.Action {
	case scenarios.Inject:
		r.labels[s.Label] = true
		return true
	case scenarios.Heal:
		return took(r.labels, s.Label)
	case scenarios.Spoil:
		r.spoiled[s.Server+s.Path] = true
		return true
	case scenarios.Mend:
		return took(r.spoiled, s.Server+s.Path)
	case scenarios.Define:
		r.defined[s.Definition.Group+"/"+s.Definition.Resource] = true
		return true
	case scenarios.Undefine:
		return took(r.defined, s.Definition.Group+"/"+s.Definition.Resource)
	case scenarios.Start:
		if !is.ended() {
			return false
		}
	case scenarios.Resume:
		if is != isPaused {
			return false
		}
	case scenarios.Pause:
		next = isPaused
	case scenarios.Kill:
		next = isKilled
	case scenarios.Stop:
		next = isStopped
	case scenarios.Restart, scenarios.Replace:
	default:
		return true
	}
	if is.ended() && s.Action != scenarios.Start || is == isPaused && s.Action != scenarios.Resume && s.Action != scenarios.Kill {
		return false
	}
	r.processes[s.Server] = next
	return true
}

func took(set map[string]bool, key string) bool {
	there := set[key]
	delete(set, key)
	return there
}
