package binaries

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// progressInterval is how often a long task reports that it is still going on: short enough for
// somebody who watches, long enough for a CI log.
const progressInterval = 15 * time.Second

// progress writes lines about one binary for people. Errors of the writer are ignored.
type progress struct {
	mu    *sync.Mutex // of the Store: several binaries may be fetched at once
	w     io.Writer
	ref   Ref
	every time.Duration
}

func (p progress) say(format string, args ...any) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.w, "%s: %s\n", p.ref, fmt.Sprintf(format, args...))
}

// during reports a task at once, and then at every interval with the time that it has taken, until
// done is called. detail (nil: none) is added at every interval.
func (p progress) during(what string, detail func() string) (done func()) {
	p.say("%s", what)
	start := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(p.every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			line := fmt.Sprintf("still %s, %s so far", what, time.Since(start).Round(time.Second))
			if detail != nil {
				line += ", " + detail()
			}
			p.say("%s", line)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
