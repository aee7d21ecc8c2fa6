package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// Disk space for making images, in bytes. The images of two versions take 0.64 GB, and twice that
// while they are made; Debian's packages take 0.4 GB before they are packed. The rest is for Go's
// caches.
const (
	engineRoom = 3 << 30
	cacheRoom  = 2 << 30
)

// cacheDir is skewproof/kind in the user's cache directory.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: find the user's cache directory: %w; set XDG_CACHE_HOME", errNeeds, err)
	}
	dir = filepath.Join(dir, "skewproof", "kind")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("%w: make the cache directory: %w; put the cache elsewhere with XDG_CACHE_HOME", errNeeds, err)
	}
	return dir, nil
}

func findEngine(ctx context.Context) (engine, error) {
	info, err := kind.FindEngine(ctx)
	switch {
	case err != nil:
		return engine{}, fmt.Errorf("%w: %w\n  '.ci/docker start' makes an engine on a Debian machine of which you are root", errNeeds, err)
	case info.OSType != "linux" || goArch(info.Architecture) != runtime.GOARCH:
		return engine{}, fmt.Errorf("%w: the Docker engine is for %s/%s, and what is built here for linux/%s", errNeeds, info.OSType,
			info.Architecture, runtime.GOARCH)
	}
	return engine{info}, nil
}

// checkSpace is called before an image is made.
func (b *builder) checkSpace() error {
	if free := kind.FreeSpace(b.cache); free >= 0 && free < cacheRoom {
		return fmt.Errorf("%w: %d MB are free in %s, and %d MB are wanted: free some, or put the cache elsewhere with XDG_CACHE_HOME",
			errNeeds, free/1e6, b.cache, int64(cacheRoom)/1e6)
	}
	// The free space of an engine on another machine is unknown.
	if free := kind.FreeSpace(b.engine.DockerRootDir); free >= 0 && free < engineRoom {
		return fmt.Errorf("%w: %d MB are free in %s, where the Docker engine keeps its images, and %d MB are wanted: "+
			"'docker system prune' frees some", errNeeds, free/1e6, b.engine.DockerRootDir, int64(engineRoom)/1e6)
	}
	return nil
}

// goArch is Go's name for the kernel's name of a machine.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

func lockCache(ctx context.Context, dir string) (unlock func(), err error) {
	l := flock.New(filepath.Join(dir, "lock"))
	held, err := l.TryLock()
	if err == nil && !held {
		say("another call is at work; waiting for it")
		held, err = l.TryLockContext(ctx, time.Second)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the cache %s: %w", dir, err)
	}
	if !held {
		return nil, errors.New("the cache is locked")
	}
	return func() { _ = l.Unlock() }, nil
}
