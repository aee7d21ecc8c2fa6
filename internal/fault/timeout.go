package fault

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// Timeout is a black hole: data is swallowed, and so is the end of the stream. Connections that are open hang, and new ones
// are opened and hang. With After they are reset when they have been in the hole for that long, without it they never end
// on their own. Swallowed data does not come back: healing resets the connections that lost some, while those that
// sent nothing live on.
//
// It blocks whatever its direction: without requests there are no responses. (With direction up a response that was already
// under way still arrives.)
const Timeout Kind = "timeout"

var timeout = kind{
	takes: []string{"after"},
	check: func(f Fault) error { return whole("after", f.After, time.Millisecond) },
	sentence: func(f Fault) string {
		if f.After == 0 {
			return "(black hole)"
		}
		return "after " + f.After.String()
	},
	toxic: func(f Fault) (string, toxics.Toxic) {
		return timeoutType, &timeoutToxic{toxics.TimeoutToxic{Timeout: f.After.Milliseconds()}}
	},
	blocks:   true,
	breaks:   true,
	swallows: true,
	bites:    bitesData,
}

const timeoutType = "timeout"

func init() { toxics.Register(timeoutType, new(timeoutToxic)) }

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
