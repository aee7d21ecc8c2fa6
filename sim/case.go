package sim

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Case is what is done to a control plane and what is asked of it, as data. Together with a tape it is all that a run depends on. The
// servers and steps are those of a plan, so that the same case can be carried out on real processes.
type Case struct {
	Servers  []scenario.Server `json:"servers"`
	Steps    []scenario.Step   `json:"steps"`
	Requests []Request         `json:"requests,omitempty"`
	// Settled begins with a control plane that has been up for a while, rather than with starting it: a quarter of the cost of a short case.
	Settled bool `json:"settled,omitempty"`
	// Load, if set, asks continually beside the Requests, as the traffic of a scenario does.
	Load *Load `json:"load,omitempty"`
}

// Request is one request of a client.
type Request struct {
	// Step is after which step it is sent, and After how long after its end; 0 is before the first step, when every server is ready.
	// So a request keeps its place when steps before it are taken out.
	Step  int           `json:"step"`
	After time.Duration `json:"after"`

	Server string `json:"server"` // that is asked
	// Verb is a verb of the API, history.VerbTable, or history.VerbDiscovery for the aggregated documents at Path.
	Verb        string      `json:"verb"`
	GVR         history.GVR `json:"gvr,omitzero"`
	Subresource string      `json:"subresource,omitempty"`
	Name        string      `json:"name,omitempty"`
	Path        string      `json:"path,omitempty"` // of discovery: /apis or /api
	User        string      `json:"user,omitempty"` // empty: admin
	// Forged is true when the client sends the header of the hop itself, which only a peer may.
	Forged bool `json:"forged,omitempty"`
	// Denied is true when the client says in that header that no peer has passed the request on. What a peer adds to it stands behind.
	Denied bool `json:"denied,omitempty"`
	// Upgrade is true when the client wants the connection to be upgraded to a WebSocket.
	Upgrade bool `json:"upgrade,omitempty"`
	// For is how long a watch is to last.
	For time.Duration `json:"for,omitempty"`
	// Accept and ContentType are headers where those that suit the verb are not meant, IfNoneMatch is one of a conditional request, and Query is
	// added to the path.
	Accept      string `json:"accept,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	IfNoneMatch string `json:"ifNoneMatch,omitempty"`
	Query       string `json:"query,omitempty"`

	before int // objects on the pages before
}

// String tells the request in a line.
func (r Request) String() string {
	what := r.GVR.String()
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if r.Path != "" {
		what = r.Path
	}
	s := fmt.Sprintf("%s %s of %s, %s after step %d", r.Verb, what, r.Server, r.After, r.Step)
	if r.Upgrade {
		s += ", by WebSocket"
	}
	if r.Forged {
		s += ", with a forged hop header"
	}
	if r.Denied {
		s += ", with a hop header that says no"
	}
	return s
}

// MinQPS and MaxQPS bound a load, in requests per second. With none, time would not pass between two requests.
const MinQPS, MaxQPS = 0.001, 100_000

// Validate checks that the case can be carried out: its plan, as scenarios do, and that requests are of servers and steps that there are.
func (c *Case) Validate() error {
	plan := scenario.Plan{Servers: c.Servers, Steps: c.Steps}
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
		if _, ok := methods[r.Verb]; !ok {
			return fmt.Errorf("request %d, %s: unknown verb %q", i+1, r, r.Verb)
		}
	}
	return nil
}
