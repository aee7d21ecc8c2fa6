package binaries

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// progressInterval is how often something that lasts says that it is still going on: often enough for somebody who
// watches, rare enough for a CI log.
const progressInterval = 15 * time.Second

// progress writes whole lines about one binary. What cannot be written is lost: progress is for people, and no reason
// to fail.
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

// during says what is being done, at once and then at every interval with the time it has taken so far, until the
// returned function is called. The detail function (nil: none) is called at every interval.
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

// megabytes is for people.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
