package existing

import (
	"context"
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	// watchInterval is how often a server is asked whether it is ready.
	watchInterval = time.Second
	// missedLooks is how many times in a row it must not be, to be taken as gone: one slow answer is none.
	missedLooks = 3
)

// Serving is the incarnation of a server that is ready at this moment, 0 if none is. It never waits. An incarnation is a time without a gap
// in which the server was ready: whether its process is another one after a gap cannot be seen from outside.
func (c *Cluster) Serving(name string) int {
	s, err := c.server(name)
	if err != nil {
		return 0
	}
	return int(s.serving.Load())
}

func (s *server) isReady(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, door := range s.ready {
		if err := door.Get().AbsPath("/readyz").MaxRetries(0).Do(asked).Error(); err != nil {
			return fmt.Errorf("ask for /readyz: %w", err)
		}
	}
	return nil
}

// watch follows one server until ctx ends.
func (c *Cluster) watch(ctx context.Context, s *server) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	missed, since := 0, history.Time(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := c.recorder.Now()
		switch err := s.isReady(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil:
			missed = 0
			if s.serving.Load() == 0 {
				c.came(s)
			}
		default:
			if missed++; missed == 1 {
				since = asked
			}
			if missed == missedLooks && s.serving.Load() != 0 {
				c.went(s, since, err)
			}
		}
	}
}

// came notes that a server is ready.
func (c *Cluster) came(s *server) {
	s.incarnation++
	c.record(s, history.StateReady, c.recorder.Now(), "")
	s.serving.Store(int64(s.incarnation))
}

// went notes that a server is gone. Whoever runs it may have stopped it, so it is taken to have ended in good order: nobody is blamed for
// what was not seen.
func (c *Cluster) went(s *server, since history.Time, why error) {
	s.serving.Store(0)
	c.status("%s: is not ready any more: %v", s.Name, why)
	detail := fmt.Sprintf("not ready any more, nobody here knows why: %v", why)
	c.record(s, history.StateStopping, since, detail)
	c.record(s, history.StateStopped, c.recorder.Now(), "")
}

func (c *Cluster) record(s *server, state history.State, at history.Time, detail string) {
	c.recorder.Lifecycle(history.Lifecycle{
		Server: s.Name, Incarnation: s.incarnation, Version: s.version, State: state, At: at, Detail: detail,
	})
}
