package suite

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skewproof/skewproof/internal/run"
)

// task is a run of a suite, which is ended after limit. Without Spec.Out there is nothing to carry
// out.
type task struct {
	spec  run.Spec
	limit time.Duration
}

// taskOf is the run of a plan into a directory.
func taskOf(p *run.Plan, out string) task {
	spec := p.Spec
	spec.Out = out
	return task{spec, limitOf(p.Schedule)}
}

// carryOutAll carries out tasks, up to parallel at a time (below 1 is 1). They begin in their
// order, and what they came to is yielded in that order.
//
// Each is a process of its own, in namespaces of its own, so that they do not disturb each other.
// If the machine has too few processors for them, the runs notice it and are inconclusive.
//
// When ctx ends, or the loop is left, what is under way is ended, and nothing else begins. All
// processes are gone when the loop is over.
func carryOutAll(ctx context.Context, program string, parallel int, tasks []task) iter.Seq2[int, Finished] {
	return func(yield func(int, Finished) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var workers sync.WaitGroup
		defer workers.Wait()
		defer cancel()
		over := make([]chan Finished, len(tasks))
		for i := range over {
			over[i] = make(chan Finished, 1)
		}
		var next atomic.Int64
		for range max(1, parallel) {
			workers.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(tasks)); i = next.Add(1) - 1 {
					over[i] <- carryOut(ctx, program, tasks[i])
				}
			})
		}
		for i := range tasks {
			if !yield(i, <-over[i]) {
				return
			}
		}
	}
}
