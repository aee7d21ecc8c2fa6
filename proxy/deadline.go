package proxy

import (
	"context"
	"sync"
	"time"
)

// deadline ends an attempt if the peer does nothing for too long. It does not count the time in
// which the client sends the request's body: a slow client must not make a healthy peer look dead.
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

func (d *deadline) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = d.afterFunc(d.limit, d.expire)
}

// expire ends the attempt, or sets the timer again if the client is or was lately sending.
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

// end stops the timer and reports whether it had not expired.
func (d *deadline) end() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.stop()
	return !d.expired
}
