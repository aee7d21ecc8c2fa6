package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

// unit is the processes that make up one server, or etcd. They are started one after the other and live and die together:
// when the first of them has ended, the unit is over.
type unit struct {
	processes []*process // in the order in which they were started
	over      chan struct{}
	once      sync.Once
	first     *process // the one that ended first; valid once over is closed
}

func newUnit() *unit { return &unit{over: make(chan struct{})} }

// add makes a running process part of the unit.
func (u *unit) add(p *process) {
	u.processes = append(u.processes, p)
	go func() {
		<-p.done
		u.once.Do(func() {
			u.first = p
			close(u.over)
		})
	}()
}

// ended reports whether the unit is over, or has not begun. If it is over, others of its processes may still run.
func (u *unit) ended() bool {
	if len(u.processes) == 0 {
		return true
	}
	select {
	case <-u.over:
		return true
	default:
		return false
	}
}

// signal sends a signal to every process.
func (u *unit) signal(s syscall.Signal) error {
	var errs []error
	for _, p := range u.processes {
		errs = append(errs, p.signal(s))
	}
	return errors.Join(errs...)
}

// kill ends every process at once and waits until all have.
func (u *unit) kill() error {
	if err := u.signal(syscall.SIGKILL); err != nil {
		return err
	}
	u.wait()
	return nil
}

// wait returns when every process has ended.
func (u *unit) wait() {
	for _, p := range u.processes {
		<-p.done
	}
	if len(u.processes) > 0 {
		<-u.over // which is closed a moment later than the first done
	}
}

// stop asks one process after the other to end gracefully, the last started first, and waits until all have. It returns the
// first that did not end well, nil if all did.
func (u *unit) stop(ctx context.Context, limit time.Duration) (failed *process, err error) {
	for _, p := range slices.Backward(u.processes) {
		if err := p.stop(ctx, limit); err != nil {
			return nil, err
		}
		if p.err != nil && failed == nil {
			failed = p
		}
	}
	u.wait()
	return failed, nil
}

// await calls ready, which asks p, until it succeeds, a process of the unit ends, or the time is over. Polling is quick because a
// start is a few seconds long and everything else waits for it.
func (u *unit) await(ctx context.Context, p *process, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-u.over:
			return fmt.Errorf("start %s: %s ended before it was ready: %s", p.name, u.first.name, u.first.epitaph())
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w; last answer: %w; last lines of its log:\n%s", p.name, context.Cause(ctx), last, p.tail(8))
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
