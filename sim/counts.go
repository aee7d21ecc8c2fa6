package sim

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
)

// Counts are how much the servers of a run asked one another.
type Counts struct {
	// Fetches is the number of fetches of a peer's discovery document that ended.
	Fetches int
	// Forwarded is the number of decisions to forward a request to a first peer, and Attempts the
	// number of attempts at peers that ended, the first ones and others.
	Forwarded, Attempts int
	// Answered is the number of requests that a peer answered whole and that were no watch, and
	// Waited the time that their clients waited for them.
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
