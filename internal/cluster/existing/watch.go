package existing

import (
	"context"
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	// watchInterval is the interval at which a server is asked whether it is ready.
	watchInterval = time.Second
	// failureThreshold is how many consecutive probes must fail before a server counts as gone.
	failureThreshold = 3
)

// Serving is the incarnation of a server that is ready now, or 0 if it is not ready. It never
// waits. Restarts cannot be seen from outside, so an incarnation is a time in which the server is
// ready without a gap.
func (c *Cluster) Serving(name string) int {
	s, err := c.server(name)
	if err != nil {
		return 0
	}
	return int(s.serving.Load())
}

// probe returns nil if the server is ready.
func (s *server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.client.Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error(); err != nil {
		return fmt.Errorf("ask for /readyz: %w", err)
	}
	return nil
}

func (c *Cluster) watch(ctx context.Context, s *server) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	failures, since := 0, history.Time(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := c.recorder.Now()
		switch err := s.probe(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			if s.serving.Load() == 0 {
				c.becameReady(s)
			}
		default:
			if failures++; failures == 1 {
				since = asked
			}
			if failures == failureThreshold && s.serving.Load() != 0 {
				c.becameUnready(s, since, err)
			}
		}
	}
}

func (c *Cluster) becameReady(s *server) {
	s.incarnation++
	c.record(s, history.StateReady, c.recorder.Now(), "")
	s.serving.Store(int64(s.incarnation))
}

// becameUnready ends an incarnation. It records a graceful stop, because the owner of the server
// may have stopped it. So the run does not blame the server for a crash that it did not see.
func (c *Cluster) becameUnready(s *server, since history.Time, why error) {
	s.serving.Store(0)
	c.status("%s: is no longer ready: %v", s.Name, why)
	detail := fmt.Sprintf("no longer ready, for an unknown reason: %v", why)
	c.record(s, history.StateStopping, since, detail)
	c.record(s, history.StateStopped, c.recorder.Now(), "")
}

func (c *Cluster) record(s *server, state history.State, at history.Time, detail string) {
	c.recorder.Lifecycle(history.Lifecycle{
		Server: s.Name, Incarnation: s.incarnation, Version: s.version, State: state, At: at, Detail: detail,
	})
}
