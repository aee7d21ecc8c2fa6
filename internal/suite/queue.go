package suite

import (
	"context"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/run"
)

// Queue carries out runs in the order in which they are added, several at a time. Each run is a process of its own, in namespaces
// of its own, so that runs do not disturb each other. If the machine has too few processors for them, the runs notice it and are
// inconclusive.
//
// A Queue is safe for concurrent use, but nothing may be added while it is being closed.
type Queue struct {
	program string
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	idle    int // how many more workers there may be
	waiting []*Queued
}

// Queued is a run that was added to a queue.
type Queued struct {
	takeTurn func()
	cancel   context.CancelFunc
	over     chan struct{} // closed when the fields below are final
	finished Finished
	begun    bool
}

// NewQueue makes a queue whose runs are carried out by program, which is skewproof, up to parallel at a time; below 1 is 1. When
// ctx ends, its runs are ended. The queue must be closed.
func NewQueue(ctx context.Context, program string, parallel int) *Queue {
	ctx, cancel := context.WithCancel(ctx)
	return &Queue{program: program, ctx: ctx, cancel: cancel, idle: max(1, parallel)}
}

// Add adds a run, which is ended after limit. Spec.Out must be set.
func (q *Queue) Add(limit time.Duration, spec run.Spec) *Queued {
	ctx, cancel := context.WithCancel(q.ctx)
	r := &Queued{cancel: cancel, over: make(chan struct{})}
	r.takeTurn = func() {
		defer close(r.over)
		defer cancel()
		if ctx.Err() != nil {
			r.finished = Finished{Code: -1, Problem: "ended before it had begun"}
			return
		}
		r.begun, r.finished = true, carryOut(ctx, q.program, limit, spec)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	if q.idle > 0 {
		q.idle--
		q.workers.Go(q.work)
	}
	return r
}

// Close ends the runs that are under way, begins no more, and waits until all processes are gone. It may be called more than once.
func (q *Queue) Close() {
	q.cancel()
	q.workers.Wait()
}

// work carries out one run after the other, until none is waiting.
func (q *Queue) work() {
	for r := q.next(); r != nil; r = q.next() {
		r.takeTurn()
	}
}

// next takes the first run that is waiting. If there is none, the worker that calls it is to end.
func (q *Queue) next() *Queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.idle++
		return nil
	}
	r := q.waiting[0]
	q.waiting = q.waiting[1:]
	return r
}

// Wait waits until a run is over. It returns what the run came to, and whether it had begun at all. When ctx ends first, the run is
// ended, or not begun when its turn comes.
func (r *Queued) Wait(ctx context.Context) (f Finished, begun bool) {
	defer context.AfterFunc(ctx, r.cancel)()
	<-r.over
	return r.finished, r.begun
}
