package clients

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

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
	tries := 0
	err := wait.PollUntilContextTimeout(ctx, learnPoll, within, true, func(ctx context.Context) (bool, error) {
		tries++
		ended, err := w.Runner.Run(ctx, Invocation{
			Program: string(binaries.Kubectl), Version: w.NewerVersion, Words: []string{"--context", w.Context, "get", bundles},
			Home: filepath.Join(w.Homes, fmt.Sprintf("learning-%d", tries)), Limit: within,
		})
		return err == nil && ended.Code == 0 && !ended.TooLong, nil
	})
	return err == nil
}
