package search

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// plainSteps replaces disturbances by simpler ones.
func (s *shrinker) plainSteps() {
	for i := 0; i < len(s.best.Steps); i++ {
		step := s.best.Steps[i]
		switch {
		case step.Action == scenario.Inject:
			s.plainFault(i)
		case step.Action == scenario.Replace:
			s.try(s.change(func(c *candidate) { c.Steps[i] = scenario.Step{Action: scenario.Restart, Server: step.Server} }))
		case step.Action == scenario.Start && step.Version != "":
			s.try(s.change(func(c *candidate) { c.Steps[i].Version = "" }))
		case step.Action == scenario.Stop:
			s.try(s.change(func(c *candidate) { c.Steps[i].Action = scenario.Kill }))
		case step.Action == scenario.Outlast:
			s.try(s.change(func(c *candidate) { c.Steps[i].Action = scenario.Soak }))
		}
		s.restart(i)
		s.oneSoak(i)
	}
}

// plainFault replaces a fault by a cut, or removes parameters of it.
func (s *shrinker) plainFault(i int) {
	f := *s.best.Steps[i].Fault
	if f.Kind == fault.Cut {
		return
	}
	plainer := []fault.Fault{
		{Kind: fault.Cut, From: f.From, To: f.To}, {Kind: fault.Timeout, From: f.From, To: f.To}, {Kind: fault.Reset, From: f.From, To: f.To},
	}
	both, still, atOnce := f, f, f
	both.Direction, still.Jitter, atOnce.After = "", 0, 0
	for _, p := range append(plainer, both, still, atOnce) {
		if p == f || p.Kind == fault.Reset && f.Kind == fault.Timeout {
			continue
		}
		if s.try(s.change(func(c *candidate) { *c.Steps[i].Fault = p })) {
			f = p
			if p.Kind == fault.Cut {
				return
			}
		}
	}
}

// restart joins a kill or stop and the next start into one restart.
func (s *shrinker) restart(i int) {
	steps := s.best.Steps
	if a := steps[i].Action; a != scenario.Kill && a != scenario.Stop {
		return
	}
	for j := i + 1; j < len(steps); j++ {
		if steps[j].Server != steps[i].Server || steps[j].Action != scenario.Start || steps[j].Version != "" {
			continue
		}
		s.try(s.change(func(c *candidate) {
			c.Steps[i].Action = scenario.Restart
			c.drop(func(k int) bool { return k == j })
		}))
		return
	}
}

// oneSoak joins two waits into one.
func (s *shrinker) oneSoak(i int) {
	if i+1 >= len(s.best.Steps) || s.best.Steps[i].Action != scenario.Soak || s.best.Steps[i+1].Action != scenario.Soak {
		return
	}
	s.try(s.change(func(c *candidate) {
		c.Steps[i].For += c.Steps[i+1].For
		c.drop(func(k int) bool { return k == i+1 })
	}))
}

// plainRequests replaces requests by simpler ones.
func (s *shrinker) plainRequests() {
	for i := range s.best.Requests {
		for _, plainer := range []func(r *sim.Request){
			func(r *sim.Request) { r.User = "" },
			func(r *sim.Request) { r.Forged = "" },
			func(r *sim.Request) { r.Upgrade = false },
			func(r *sim.Request) {
				if r.Verb != history.VerbDiscovery {
					r.Verb, r.Name, r.Subresource, r.For, r.Upgrade = "list", "", "", 0, false
				}
			},
			func(r *sim.Request) { r.Subresource, r.Name = "", "" },
			func(r *sim.Request) { r.Name = "" },
		} {
			c := s.change(func(c *candidate) { plainer(&c.Requests[i]) })
			if c.Requests[i] != s.best.Requests[i] {
				s.try(c)
			}
		}
	}
}

// round are times that are easy to read, shortest first.
var round = [...]time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
	5 * time.Minute, time.Hour,
}

// roundTimes makes waits short and round.
func (s *shrinker) roundTimes() {
	for i := range s.best.Steps {
		s.roundTime(round[:], func(c *candidate) *time.Duration { return &c.Steps[i].For })
	}
	for i := range s.best.Requests {
		s.roundTime(append([]time.Duration{0}, round[:]...), func(c *candidate) *time.Duration { return &c.Requests[i].After })
	}
}

func (s *shrinker) roundTime(to []time.Duration, of func(c *candidate) *time.Duration) {
	is := *of(&s.best)
	if is == 0 {
		return
	}
	for _, d := range to {
		if d == is || slices.Contains(to, is) && d > is {
			return
		}
		if s.try(s.change(func(c *candidate) { *of(c) = d })) {
			return
		}
	}
}

// candidate is a case that may be smaller and show the same violation.
type candidate struct {
	spec Spec
	sim.Case
	tape [tape.Streams][]uint32
}

// clone copies the parts of the case that shrinking changes.
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

// drop removes the steps for which out is true, and the steps that are impossible without them,
// such as the heal of a removed fault. Requests keep their place among the remaining steps.
func (c *candidate) drop(out func(i int) bool) {
	state := scenario.NewState(c.Servers)
	kept := c.Steps[:0:0]
	place := make([]int, len(c.Steps)+1) // new step of a request, by its old step
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
