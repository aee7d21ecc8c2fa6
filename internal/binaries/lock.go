package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a lock that another process holds is tried again. flock(2) cannot be waited for and be
// cancelled at the same time.
const lockPoll = 200 * time.Millisecond

// lock takes the named lock of the cache, which excludes other processes and other goroutines of this one. While it has to
// wait it says for whom. The kernel releases it when its holder ends, however it ends.
func (s *Store) lock(ctx context.Context, dir, name string, p progress) (unlock func(), err error) {
	path := filepath.Join(dir, locksDir, name+".lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, &cacheError{dir: dir, err: err}
	}
	// The file is never removed: another process could be holding a lock on the file of the old name.
	l := flock.New(path)
	held, err := l.TryLock()
	if err == nil && !held {
		done := p.during("waiting for "+lockHolder(path, name), nil)
		held, err = l.TryLockContext(ctx, lockPoll)
		done()
	}
	if ctx.Err() != nil {
		_ = l.Unlock()
		return nil, fmt.Errorf("%s: wait for the lock %q: %w", p.ref, name, context.Cause(ctx))
	}
	if err != nil || !held {
		return nil, &cacheError{dir: dir, err: fmt.Errorf("lock %s: %w", path, err)}
	}
	// Who holds it is for people only: a lock works as well without.
	_ = os.WriteFile(path, fmt.Appendf(nil, "process %d, at work on %s since %s", os.Getpid(), p.ref, time.Now().Format(time.TimeOnly)), 0o600)
	return func() {
		_ = os.Truncate(path, 0)
		_ = l.Unlock()
	}, nil
}

func lockHolder(path, name string) string {
	holder, err := os.ReadFile(path)
	if err != nil || len(holder) == 0 {
		return fmt.Sprintf("another process (lock %q)", name)
	}
	return strings.TrimSpace(string(holder))
}
