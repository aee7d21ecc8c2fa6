package step

import (
	"context"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Converger is a [Load] that can report whether the servers answer as they must.
type Converger interface {
	// Converged reports whether every server that is ready lists in discovery all that any of them
	// serves, and answers a request for each of these resources. It asks around all links.
	Converged(ctx context.Context) bool
}

const (
	// glance is the time between two checks whether the servers have converged.
	glance = 500 * time.Millisecond
	// calm is for how long every look must find that they have.
	calm = 3 * time.Second
)

// converge waits until the servers have converged, for at most limit after the last disturbance. It
// is not an error if they have not converged, because invariants judge the answers.
func (e *Executor) converge(ctx context.Context, limit history.Time) error {
	until := e.disturbed + limit
	load, ok := e.Load.(Converger)
	if !ok {
		return e.Clock.Sleep(ctx, until-e.Clock.Now())
	}
	since := e.Clock.Now() // from when on every look was good
	for {
		now := e.Clock.Now()
		switch {
		case !load.Converged(ctx):
			since = e.Clock.Now()
		case now-since >= calm:
			return nil
		}
		if now >= until {
			return nil
		}
		if err := e.Clock.Sleep(ctx, min(glance, max(until-e.Clock.Now(), time.Millisecond))); err != nil {
			return err
		}
	}
}
