package clients

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
)

// FillStale lets kubectl of a version fill its stale discovery cache. Call it before the newer
// server is there.
func (w Way) FillStale(ctx context.Context, version string) error {
	words := []string{"--context", w.Context, "get", "namespaces"} // to know this resource, it reads discovery
	ended, err := w.Runner.Run(ctx, Invocation{Program: string(binaries.Kubectl), Version: version, Words: words, Home: w.Stale(version),
		Limit: limit})
	if err == nil && (ended.Code != 0 || ended.TooLong) {
		err = fmt.Errorf("exit code %d: %s", ended.Code, FirstError(ended.Problem))
	}
	if err != nil {
		return fmt.Errorf("fill the discovery cache of kubectl %s: %w", version, err)
	}
	return nil
}

// learnPoll is how often a server is asked whether it has learned of another.
const learnPoll = time.Second

// Learned waits until kubectl, without a cache, gets a resource that only the newer server has
// through the tested path. It returns false if that does not happen within the limit.
func (w Way) Learned(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for n := 0; ; n++ {
		ended, err := w.Runner.Run(ctx, Invocation{
			Program: string(binaries.Kubectl), Version: w.NewerVersion, Words: []string{"--context", w.Context, "get", bundles},
			Home: filepath.Join(w.Homes, fmt.Sprintf("learning-%d", n)), Limit: within,
		})
		if err == nil && ended.Code == 0 && !ended.TooLong {
			return true
		}
		timer := time.NewTimer(learnPoll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}
