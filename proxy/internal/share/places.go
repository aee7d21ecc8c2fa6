package share

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Places lets each caller do one thing at a time. What a caller asks for meanwhile waits, and
// delays no other caller. The zero value has a place for everybody. It is safe for concurrent use.
type Places struct {
	mu sync.Mutex
	of map[string]*place
}

type place struct {
	free  *semaphore.Weighted
	users int // have it or wait for it
}

// Enter waits until the caller's place is free, in the order of the calls, and takes it until leave
// is called. The error is the context's: it ended first.
func (p *Places) Enter(ctx context.Context, caller string) (leave func(), err error) {
	own := p.join(caller)
	if err := own.free.Acquire(ctx, 1); err != nil {
		p.part(caller, own)
		return nil, err
	}
	return sync.OnceFunc(func() {
		own.free.Release(1)
		p.part(caller, own)
	}), nil
}

func (p *Places) join(caller string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.of[caller]
	if own == nil {
		own = &place{free: semaphore.NewWeighted(1)}
		if p.of == nil {
			p.of = map[string]*place{}
		}
		p.of[caller] = own
	}
	own.users++
	return own
}

// part deletes a place that nobody uses, because a client may have any number of names.
func (p *Places) part(caller string, own *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(p.of, caller)
	}
}

// Callers returns how many callers have their place or wait for it.
func (p *Places) Callers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.of)
}
