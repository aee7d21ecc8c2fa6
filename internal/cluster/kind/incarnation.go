package kind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// startTimeout is how long a kubelet may take to start a pod whose manifest has come, or changed.
	startTimeout = 2 * time.Minute
	// readyTimeout is generous: a loaded two-core machine takes a tenth of it.
	readyTimeout = 3 * time.Minute
	// stopTimeout exceeds the time after which a kubelet kills (30 s, the default of static pods) and what it takes to notice a change.
	stopTimeout   = 90 * time.Second
	readyInterval = 100 * time.Millisecond
)

// incarnation is one life of a server: its processes, from the start of the first to the end of the last.
type incarnation struct {
	number    int
	version   string
	processes []*process // in the order in which they were started
	over      chan struct{}
	once      sync.Once
	first     *process    // the one that ended first; valid once over is closed
	asked     atomic.Bool // its end has been asked for
	crashed   atomic.Bool // its end has been recorded as a crash
}

func newIncarnation(number int, version string) *incarnation {
	return &incarnation{number: number, version: version, over: make(chan struct{})}
}

// add makes a running process part of the incarnation.
func (i *incarnation) add(p *process) {
	i.processes = append(i.processes, p)
	go func() {
		<-p.done
		i.once.Do(func() {
			i.first = p
			close(i.over)
		})
	}()
}

// ended reports whether the incarnation is over, or has not begun.
func (i *incarnation) ended() bool {
	if len(i.processes) == 0 {
		return true
	}
	select {
	case <-i.over:
		return true
	default:
		return false
	}
}

// pids are those of the processes that have not ended.
func (i *incarnation) pids() []string {
	var pids []string
	for _, p := range i.processes {
		select {
		case <-p.done:
		default:
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// gone waits until a process has ended.
func (p *process) gone(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end %s: %w", p.pod, context.Cause(ctx))
	case <-timer.C:
		return fmt.Errorf("end %s of node %s: it still runs after %s; last lines of its log:\n%s", p.pod, p.node, limit, p.lastLines(8))
	}
}

// errEnded says that an incarnation was over before it was ready.
var errEnded = errors.New("ended before it was ready")

// await calls ready until it succeeds, a process of the incarnation ends, or the time is over.
func (i *incarnation) await(ctx context.Context, p *process, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-i.over:
			return fmt.Errorf("start %s (%s): %s %w; last lines of its log:\n%s", p.pod, i.version, i.first.pod, errEnded, i.first.lastLines(8))
		case <-ctx.Done():
			return fmt.Errorf("start %s (%s): %w; last answer: %w; last lines of its log:\n%s", p.pod, i.version, context.Cause(ctx), last, p.lastLines(8))
		case <-tick.C:
			attempt, stop := context.WithTimeout(ctx, 2*time.Second)
			err := ready(attempt)
			stop()
			if err == nil {
				return nil
			}
			if ctx.Err() == nil {
				last = err
			}
		}
	}
}
