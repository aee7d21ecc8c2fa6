package fabric

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/skewproof/skewproof/internal/fault"
)

func init() { toxics.Register(fault.ResetToxic, new(resetToxic)) }

// resetToxic takes the place of toxiproxy's own in the registry, which (v2.12.0) arranges for the RST only when a connection
// is opened, so that one opened before the toxic was added ends with a FIN; which cannot be healed while it waits; and which
// leaves goroutines behind. Here the outlet makes the RST (see half.go).
type resetToxic struct{ toxics.ResetToxic }

// doomed is the data that a connection will be reset for.
type doomed struct {
	chunk *stream.StreamChunk
	at    time.Time
}

// NewState implements toxics.StatefulToxic.
func (t *resetToxic) NewState() any { return new(doomed) }

// Pipe implements toxics.Toxic.
func (t *resetToxic) Pipe(stub *toxics.ToxicStub) {
	state := stub.State.(*doomed)
	if state.chunk == nil {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			*state = doomed{chunk: chunk, at: time.Now().Add(time.Duration(t.Timeout) * time.Millisecond)}
		}
	}
	timer := time.NewTimer(time.Until(state.at))
	defer timer.Stop()
	select {
	case <-stub.Interrupt: // to be updated, and then run again, or to be healed
	case <-timer.C:
		stub.Close()
		drain(stub.Input)
	}
}

// Cleanup implements toxics.CleanupToxic: a connection that was not reset yet goes on with nothing lost.
func (t *resetToxic) Cleanup(stub *toxics.ToxicStub) {
	if state := stub.State.(*doomed); state.chunk != nil {
		stub.Output <- state.chunk
	}
}
