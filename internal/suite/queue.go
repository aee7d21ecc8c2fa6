package conformance

import (
	"context"
	"sync"
	"time"
)

// Queue carries out runs in the order in which they are added, and so many at a time. Runs do not disturb each other: each is a process of its own,
// in namespaces of its own. What a machine has not the processors for is seen by the runs themselves, and makes them inconclusive.
//
// A queue is safe for concurrent use, but that nothing may be added while it is being closed.
type Queue struct {
	program Program
	ctx     context.Context
	cancel  context.CancelFunc
	lanes   sync.WaitGroup

	mu      sync.Mutex
	free    int // lanes that are not in use
	waiting []*Queued
}

// Queued is a run that was added to a queue.
type Queued struct {
	takeTurn func()
	cancel   context.CancelFunc
	over     chan struct{} // closed when it is known what follows
	finished Finished
	begun    bool
}

// NewQueue makes a queue whose runs are carried out by the program, up to atOnce at a time; below 1 is 1. The end of ctx is that of its runs. It must be
// closed.
func NewQueue(ctx context.Context, program Program, atOnce int) *Queue {
	ctx, cancel := context.WithCancel(ctx)
	return &Queue{program: program, ctx: ctx, cancel: cancel, free: max(1, atOnce)}
}

// Add adds a run, which is what [Program.Run] takes. It is begun as soon as all that were added before have begun, and fewer than the queue may carry
// out at a time are under way.
func (q *Queue) Add(limit time.Duration, dir string, words ...string) *Queued {
	ctx, cancel := context.WithCancel(q.ctx)
	r := &Queued{cancel: cancel, over: make(chan struct{})}
	r.takeTurn = func() {
		defer close(r.over)
		defer cancel()
		if ctx.Err() != nil {
			r.finished = Finished{Code: -1, Problem: "ended before it had begun"}
			return
		}
		r.begun, r.finished = true, q.program.Run(ctx, limit, dir, words...)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	if q.free > 0 {
		q.free--
		q.lanes.Go(q.lane)
	}
	return r
}

// Close ends what is under way, begins nothing more, and waits until all processes are gone. It may be called more than once.
func (q *Queue) Close() {
	q.cancel()
	q.lanes.Wait()
}

// lane carries out one run after the other, until none is waiting.
func (q *Queue) lane() {
	for r := q.next(); r != nil; r = q.next() {
		r.takeTurn()
	}
}

// next takes the run whose turn it is. If there is none, the lane is free again.
func (q *Queue) next() *Queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free++
		return nil
	}
	r := q.waiting[0]
	q.waiting = q.waiting[1:]
	return r
}

// Wait waits for a run to be over, and tells what it came to, and whether it had begun at all. When ctx ends first, the run is ended, or is not begun
// when it is its turn.
func (r *Queued) Wait(ctx context.Context) (f Finished, begun bool) {
	defer context.AfterFunc(ctx, r.cancel)()
	<-r.over
	return r.finished, r.begun
}
