package proxy

import (
	"context"
	"sync"
	"time"
)

// deadline ends an attempt at which the peer does nothing for too long. While the request's body is still coming from the client it is the
// client that is slow: a client must not be able to make a healthy peer look dead by sending slowly.
type deadline struct {
	limit     time.Duration
	afterFunc func(time.Duration, func()) func() bool
	body      *body
	cancel    context.CancelCauseFunc

	mu    sync.Mutex
	stop  func() bool
	read  int // of the body, when the timer was set
	ended bool
	rang  bool
}

// begin sets the timer.
func (d *deadline) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = d.afterFunc(d.limit, d.ring)
}

// ring ends the attempt, unless the client has sent something meanwhile or is being waited for.
func (d *deadline) ring() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	if read, waiting := d.body.progress(); waiting || read > d.read {
		d.read = read
		d.stop = d.afterFunc(d.limit, d.ring)
		return
	}
	d.rang = true
	d.cancel(errNoAnswerInTime)
}

// end stops the timer, and reports whether it has not rung.
func (d *deadline) end() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.stop()
	return !d.rang
}
