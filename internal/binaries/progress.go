package binaries

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// progressInterval is the interval at which a long task reports that it still runs. It is short
// enough for a person who watches, and long enough for a CI log.
const progressInterval = 15 * time.Second

// progress writes lines about one binary for people. It ignores errors of the writer.
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

// during reports a task at once, and then at every interval with the elapsed time, until done is
// called. It adds the result of detail at every interval; nil means none.
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
