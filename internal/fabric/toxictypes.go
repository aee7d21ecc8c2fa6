package fabric

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/skewproof/skewproof/internal/fault"
)

// The toxics in this file replace toxiproxy's own (v2.12.0) in its registry.
func init() {
	toxics.Register(fault.TimeoutToxic, new(timeoutToxic))
	toxics.Register(fault.ResetToxic, new(resetToxic))
	toxics.Register(fault.LimitDataToxic, new(limitDataToxic))
}

// timeoutToxic swallows a stream. toxiproxy's own toxic lets the end of a stream through, ends idle
// connections when it is removed, and leaks goroutines. As there, each chunk starts the time anew.
type timeoutToxic struct{ toxics.TimeoutToxic }

// swallowed says what the toxic has swallowed of a connection.
type swallowed struct {
	since time.Time // when it last swallowed data, or met the connection
	data  bool
}

// NewState implements toxics.StatefulToxic.
func (t *timeoutToxic) NewState() any { return &swallowed{since: time.Now()} }

// Pipe implements toxics.Toxic.
func (t *timeoutToxic) Pipe(stub *toxics.ToxicStub) {
	state := stub.State.(*swallowed)
	left := func() time.Duration { return time.Until(state.since.Add(time.Duration(t.Timeout) * time.Millisecond)) }
	var timer *time.Timer
	var expired <-chan time.Time
	if t.Timeout > 0 {
		timer = time.NewTimer(left())
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
			state.since, state.data = time.Now(), true
			if timer != nil {
				timer.Reset(left())
			}
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

// resetToxic resets a connection some time after its first data. toxiproxy's own toxic prepares the
// RST only when a connection is opened, so that older connections end with a FIN. It also cannot be
// healed while it waits, and leaks goroutines. Here the outlet sends the RST (see pipe.go).
type resetToxic struct{ toxics.ResetToxic }

// pendingReset is the data after which a connection will be reset.
type pendingReset struct {
	chunk *stream.StreamChunk
	at    time.Time
}

// NewState implements toxics.StatefulToxic.
func (t *resetToxic) NewState() any { return new(pendingReset) }

// Pipe implements toxics.Toxic.
func (t *resetToxic) Pipe(stub *toxics.ToxicStub) {
	state := stub.State.(*pendingReset)
	if state.chunk == nil {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			*state = pendingReset{chunk: chunk, at: time.Now().Add(time.Duration(t.Timeout) * time.Millisecond)}
		}
	}
	timer := time.NewTimer(time.Until(state.at))
	defer timer.Stop()
	select {
	case <-stub.Interrupt: // the toxic is updated, and then Pipe is called again, or it is healed
	case <-timer.C:
		stub.Close()
		drain(stub.Input)
	}
}

// Cleanup implements toxics.CleanupToxic: a pending reset loses nothing.
func (t *resetToxic) Cleanup(stub *toxics.ToxicStub) {
	if state := stub.State.(*pendingReset); state.chunk != nil {
		stub.Output <- state.chunk
	}
}

// limitDataToxic ends a connection after a number of bytes. toxiproxy's own toxic stops reading at
// the limit, so that the goroutines in front of it wait for ever to deliver the next chunk.
type limitDataToxic struct{ toxics.LimitDataToxic }

// Pipe implements toxics.Toxic.
func (t *limitDataToxic) Pipe(stub *toxics.ToxicStub) {
	t.LimitDataToxic.Pipe(stub)
	if stub.Closed() {
		drain(stub.Input)
	}
}

// drain discards data that is not needed any more, until the connection and its stub are closed.
func drain(input <-chan *stream.StreamChunk) {
	for range input {
		// Nothing to do: the connection is being closed.
	}
}
