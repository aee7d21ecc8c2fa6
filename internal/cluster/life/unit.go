package life

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Process is one running program, wherever it runs.
type Process interface {
	// Name is for people: the program, and whose it is.
	Name() string
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Epitaph says how a process that has ended did so, with the last lines of its log.
	Epitaph() string
	// Log is what it writes.
	Log() Log
}

// Unit is processes that are started one after the other and live and die together: when the first of them has ended, the unit is over.
type Unit[P Process] struct {
	processes []P // in the order in which they were started
	over      chan struct{}
	once      sync.Once
	first     P
}

// NewUnit is a unit without processes.
func NewUnit[P Process]() *Unit[P] { return &Unit[P]{over: make(chan struct{})} }

// Add makes a running process part of the unit.
func (u *Unit[P]) Add(p P) {
	u.processes = append(u.processes, p)
	go func() {
		<-p.Done()
		u.once.Do(func() {
			u.first = p
			close(u.over)
		})
	}()
}

// Processes are all of the unit, in the order in which they were started.
func (u *Unit[P]) Processes() []P { return u.processes }

// Living are those of its processes that have not ended.
func (u *Unit[P]) Living() []P {
	var living []P
	for _, p := range u.processes {
		select {
		case <-p.Done():
		default:
			living = append(living, p)
		}
	}
	return living
}

// Over is closed when the first of its processes has ended. Others may still run.
func (u *Unit[P]) Over() <-chan struct{} { return u.over }

// First is the process that ended first. It is valid once the unit is over.
func (u *Unit[P]) First() P { return u.first }

// Ended reports whether the unit is over, or has not begun.
func (u *Unit[P]) Ended() bool {
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

// Wait returns when every process has ended.
func (u *Unit[P]) Wait() {
	for _, p := range u.processes {
		<-p.Done()
	}
	if len(u.processes) > 0 {
		<-u.over // which is closed a moment later than the first Done
	}
}

// Await calls ready, which asks p, until it succeeds, a process of the unit ends, or the time is over. Polling is quick because a
// start is a few seconds long and everything else waits for it.
func (u *Unit[P]) Await(ctx context.Context, p P, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("none")
	for {
		select {
		case <-u.over:
			return fmt.Errorf("start %s: %s ended before it was ready: %s", p.Name(), u.first.Name(), u.first.Epitaph())
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w; last answer: %w; last lines of its log:\n%s", p.Name(), context.Cause(ctx), last, p.Log().Tail(8))
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
