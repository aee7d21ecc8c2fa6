package fabric

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/skewproof/skewproof/internal/fault"
)

func init() { toxics.Register(fault.TimeoutToxic, new(timeoutToxic)) }

// timeoutToxic takes the place of toxiproxy's own in the registry, which (v2.12.0) lets the end of a stream through, starts
// its timeout anew with each chunk, ends every connection when it is removed, idle ones too, and leaves goroutines behind.
type timeoutToxic struct{ toxics.TimeoutToxic }

// swallowed is what a connection has in the hole.
type swallowed struct {
	since time.Time // when the connection met the toxic
	data  bool
}

// NewState implements toxics.StatefulToxic.
func (t *timeoutToxic) NewState() any { return &swallowed{since: time.Now()} }

// Pipe implements toxics.Toxic.
func (t *timeoutToxic) Pipe(stub *toxics.ToxicStub) {
	state := stub.State.(*swallowed)
	var expired <-chan time.Time
	if t.Timeout > 0 {
		timer := time.NewTimer(time.Until(state.since.Add(time.Duration(t.Timeout) * time.Millisecond)))
		defer timer.Stop()
		expired = timer.C
	}
	for input := stub.Input; ; {
		select {
		case <-stub.Interrupt:
			return
		case <-expired:
			stub.Close()
			drain(stub.Input)
			return
		case chunk := <-input:
			if chunk == nil {
				input = nil // the end is swallowed too
				continue
			}
			state.data = true
		}
	}
}

// Cleanup implements toxics.CleanupToxic.
func (t *timeoutToxic) Cleanup(stub *toxics.ToxicStub) {
	if stub.State.(*swallowed).data {
		stub.Close()
		go drain(stub.Input)
	}
}

// drain takes what nobody will read any more, until the stub in front is closed, as it is once the connection is.
func drain(input <-chan *stream.StreamChunk) {
	for range input {
		// Nothing is kept: the connection is being broken.
	}
}
