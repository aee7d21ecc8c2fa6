package sim

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
)

// Case describes, as data, the faults and changes in a control plane and the requests to it. A run
// depends only on its case and its tape. The servers and steps are those of a plan, so the same
// case can be carried out on real processes.
type Case struct {
	Servers  []scenario.Server `json:"servers"`
	Steps    []scenario.Step   `json:"steps"`
	Requests []Request         `json:"requests,omitempty"`
	// Settled begins with a control plane that has been up for a while, instead of starting it.
	// This saves a quarter of the cost of a short case.
	Settled bool `json:"settled,omitempty"`
	// Load, if set, sends requests continually in addition to Requests, as the traffic of a
	// scenario does.
	Load *Load `json:"load,omitempty"`
}

// CaseOf returns a plan as a case, with the load of the plan at a rate in requests a second.
func CaseOf(plan scenario.Plan, qps float64) Case {
	return Case{Servers: plan.Servers, Steps: plan.Steps, Load: &Load{QPS: qps, Traffic: plan.Traffic, Nodes: plan.Nodes}}
}

// Request is one request of a client: its content, its server, and its time.
type Request struct {
	// Step is the number of the step after which the request is sent. After is the time from the
	// end of this step. Step 0 is the time before the first step, when every server is ready. So a
	// request stays at its place when a step before it is removed.
	Step  int           `json:"step"`
	After time.Duration `json:"after"`

	Server string `json:"server"` // that receives the request
	workload.Request
}

// String describes the request in a line.
func (r Request) String() string {
	return fmt.Sprintf("%s, of %s, %s after step %d", r.Request.String(), r.Server, r.After, r.Step)
}

// MinQPS and MaxQPS are the bounds of a load, in requests per second. Without an upper bound, no
// time would pass between two requests.
const MinQPS, MaxQPS = 0.001, 100_000

// Validate checks that the case can be carried out. It checks the plan as scenarios do, and that
// the requests name servers and steps that exist.
func (c *Case) Validate() error {
	plan := scenario.Plan{Servers: c.Servers, Steps: c.Steps}
	if c.Load != nil {
		plan.Traffic, plan.Nodes = c.Load.Traffic, c.Load.Nodes
	}
	if err := plan.Validate(); err != nil {
		return err
	}
	if c.Load != nil && !(c.Load.QPS >= MinQPS && c.Load.QPS <= MaxQPS) {
		return fmt.Errorf("the load is of %v requests a second: it must be of %v to %v", c.Load.QPS, MinQPS, MaxQPS)
	}
	known := map[string]bool{}
	for _, s := range c.Servers {
		known[s.Name] = true
	}
	for i, r := range c.Requests {
		switch {
		case !known[r.Server]:
			return fmt.Errorf("request %d, %s: there is no server %q", i+1, r, r.Server)
		case r.Step < 0 || r.Step > len(c.Steps):
			return fmt.Errorf("request %d, %s: there are %d steps", i+1, r, len(c.Steps))
		case r.After < 0:
			return fmt.Errorf("request %d, %s: the time must not be negative", i+1, r)
		}
		if r.Method() == "" {
			return fmt.Errorf("request %d, %s: unknown verb %q", i+1, r, r.Verb)
		}
		if r.Forged != "" && r.ForgedHeader() == nil {
			return fmt.Errorf("request %d, %s: unknown forgery %q (known: %q)", i+1, r, r.Forged, workload.ForgeryNames())
		}
	}
	return nil
}
