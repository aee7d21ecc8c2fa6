package sim

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
)

// Counts are the numbers of requests between the servers of a run.
type Counts struct {
	// Fetches is the number of fetches of a peer's discovery document that ended.
	Fetches int
	// Forwarded is the number of decisions to forward a request to a first peer. Attempts is the
	// number of attempts at peers that ended, including the first ones.
	Forwarded, Attempts int
	// Answered is the number of requests, without watches, that a peer answered completely. Waited
	// is the total time that their clients waited for them.
	Answered int
	Waited   time.Duration
}

// decided counts a decision.
func (c *Counts) decided(d proxy.Decision, tried int) {
	if d.Action == proxy.Forward && tried == 0 {
		c.Forwarded++
	}
}

// completed counts an answer.
func (c *Counts) completed(op *operation) {
	if op.hops > 0 && op.Verb != "watch" && op.Failure == history.FailureNone && op.Status < 500 {
		c.Answered++
		c.Waited += op.End - op.Start
	}
}
