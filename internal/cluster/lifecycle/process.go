package lifecycle

import (
	"context"
	"errors"
	"fmt"
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

// hasEnded reports whether a process has ended.
func hasEnded(p Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// AwaitReady calls ready until it succeeds, the process ends, or the limit has passed. It calls
// ready often, because the rest of a run waits for it.
func AwaitReady(ctx context.Context, p Process, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("none")
	for {
		select {
		case <-p.Done():
			return fmt.Errorf("start %s: it ended before it was ready: %s", p.Name(), Ending(p))
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
