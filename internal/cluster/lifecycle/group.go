package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Process is one running program, on any backend.
type Process interface {
	// Name is for people: the program and its server.
	Name() string
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Exit says how the process has ended, such as "exit status 3"; ok is false if the process
	// failed. It is valid once Done is closed.
	Exit() (how string, ok bool)
	// Log is the output of the process.
	Log() Log
}

const tailLines = 8

// Ending says how a process has ended, with the last lines of its log.
func Ending(p Process) string {
	how, _ := p.Exit()
	if tail := p.Log().Tail(tailLines); tail != "" {
		return how + "; last lines of its log:\n" + tail
	}
	return how + "; its log is empty"
}

// stillRunningError says that a process did not end in time.
type stillRunningError struct{ limit time.Duration }

func (e *stillRunningError) Error() string { return fmt.Sprintf("still running after %s", e.limit) }

// AwaitEnd returns when a process has ended. It returns an error when ctx ends or the limit has
// passed.
func AwaitEnd(ctx context.Context, p Process, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &stillRunningError{limit})
	defer cancel()
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end %s: %w; last lines of its log:\n%s", p.Name(), context.Cause(ctx), p.Log().Tail(tailLines))
	}
}

// Group is a set of processes that start one after another. It is over when the first of them ends.
type Group[P Process] struct {
	processes []P // in the order in which they were started
	over      chan struct{}
	once      sync.Once
	first     P
}

// NewGroup returns a group without processes.
func NewGroup[P Process]() *Group[P] { return &Group[P]{over: make(chan struct{})} }

// Add adds a running process to the group.
func (g *Group[P]) Add(p P) {
	g.processes = append(g.processes, p)
	go func() {
		<-p.Done()
		g.once.Do(func() {
			g.first = p
			close(g.over)
		})
	}()
}

// Processes returns the processes of the group, in the order in which they were started.
func (g *Group[P]) Processes() []P { return g.processes }

// Living returns the processes that have not ended.
func (g *Group[P]) Living() []P {
	var living []P
	for _, p := range g.processes {
		select {
		case <-p.Done():
		default:
			living = append(living, p)
		}
	}
	return living
}

// Over returns a channel that is closed when the first of the processes has ended. Others may still
// run.
func (g *Group[P]) Over() <-chan struct{} { return g.over }

// First returns the process that ended first. It is valid once the group is over.
func (g *Group[P]) First() P { return g.first }

// Ended reports whether the group is over, or has no processes yet.
func (g *Group[P]) Ended() bool {
	if len(g.processes) == 0 {
		return true
	}
	select {
	case <-g.over:
		return true
	default:
		return false
	}
}

// AwaitEnd returns when every process has ended. The limit applies to each process.
func (g *Group[P]) AwaitEnd(ctx context.Context, limit time.Duration) error {
	for _, p := range g.processes {
		if err := AwaitEnd(ctx, p, limit); err != nil {
			return err
		}
	}
	if len(g.processes) > 0 {
		<-g.over // it is closed shortly after the first Done
	}
	return nil
}

// AwaitReady calls ready until it succeeds, a process of the group ends, or the limit has passed.
// It calls ready often, because the rest of a run waits for it.
func (g *Group[P]) AwaitReady(ctx context.Context, p P, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("none")
	for {
		select {
		case <-g.over:
			return fmt.Errorf("start %s: %s ended before it was ready: %s", p.Name(), g.first.Name(), Ending(g.first))
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w; last answer: %w; last lines of its log:\n%s", p.Name(), context.Cause(ctx), last,
				p.Log().Tail(tailLines))
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
