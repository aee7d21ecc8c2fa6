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
	now       func() time.Time
	afterFunc func(time.Duration, func()) func() bool
	body      *body
	cancel    context.CancelCauseFunc

	mu      sync.Mutex
	stop    func() bool
	ended   bool
	expired bool
}

// begin sets the timer.
func (d *deadline) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = d.afterFunc(d.limit, d.expire)
}

// expire ends the attempt, unless the client is being waited for, or has sent something so lately that the peer's time is not over yet.
func (d *deadline) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	waiting, idle := d.body.idle(d.now())
	if waiting {
		idle = 0
	}
	if left := d.limit - idle; left > 0 {
		d.stop = d.afterFunc(left, d.expire)
		return
	}
	d.expired = true
	d.cancel(errNoAnswerInTime)
}

// end stops the timer, and reports whether it has not expired.
func (d *deadline) end() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.stop()
	return !d.expired
}
