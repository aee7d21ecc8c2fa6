package sim

import (
	"context"
	"time"
)

// requestContext is the context of a request at the server that serves it. It starts no goroutine: who derives a context from it is told
// through AfterFunc, in the simulator's own goroutine, which is why it must be the outermost.
type requestContext struct {
	x      *exchange
	values context.Context // with the request info and the user
	err    error
	after  []*afterFunc
}

type afterFunc struct {
	do func()
}

// exchangeKey is the key under which a context has its exchange.
type exchangeKey struct{}

var (
	openDone   = make(chan struct{})
	closedDone = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

func (c *requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is for those who ask whether it is over; nobody may wait for it.
func (c *requestContext) Done() <-chan struct{} {
	if c.err != nil {
		return closedDone
	}
	return openDone
}

func (c *requestContext) Err() error { return c.err }

func (c *requestContext) Value(key any) any {
	if key == (exchangeKey{}) {
		return c.x
	}
	return c.values.Value(key)
}

// AfterFunc is what package context looks for before it starts a goroutine.
func (c *requestContext) AfterFunc(f func()) (stop func() bool) {
	a := &afterFunc{f}
	c.after = append(c.after, a)
	return func() bool {
		pending := a.do != nil
		a.do = nil
		return pending
	}
}

func (c *requestContext) cancel() {
	c.err = context.Canceled
	after := c.after
	c.after = nil
	for _, a := range after {
		if do := a.do; do != nil {
			a.do = nil
			do()
		}
	}
}
