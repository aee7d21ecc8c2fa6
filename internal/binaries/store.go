// Package binaries gets kube-apiserver and etcd of any released version, and the other programs of
// a node. It takes a binary from the user's path, from the cache, or from the official release. If
// the release cannot be reached, it builds the binary from the published Go modules.
//
// The cache outlives the checkout, and all processes of a user share it. A binary enters it
// atomically, under a lock, after a check of its version. Each use checks the hash of the binary
// again.
package binaries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// These are the defaults of [Store.KubernetesURL] and [Store.EtcdURL].
const (
	DefaultKubernetesURL = "https://dl.k8s.io/release"
	DefaultEtcdURL       = "https://github.com/etcd-io/etcd/releases/download"
)

// Origin says where a binary came from.
type Origin string

// The origins of a binary.
const (
	OriginPath     Origin = "path"     // the user's own
	OriginCache    Origin = "cache"    // it was in the cache already
	OriginDownload Origin = "download" // the official release
	OriginBuild    Origin = "build"    // built on this machine from the published Go modules
)

// Binary is an executable file.
type Binary struct {
	Component Component `json:"component"`
	Version   string    `json:"version"`
	Platform  string    `json:"platform"`          // GOOS-GOARCH, such as "linux-amd64"
	Path      string    `json:"-"`                 // absolute
	Origin    Origin    `json:"origin"`            // in the cache's record: the first origin
	How       string    `json:"how"`               // one line for people: the URL, or the module that it was built from
	SHA256    string    `json:"sha256"`            // hex
	Size      int64     `json:"size"`              // bytes
	Seconds   float64   `json:"seconds,omitempty"` // how long it took to build; zero if it was not built
	Source    string    `json:"source,omitempty"`  // hex SHA-256 of the source, where that is skewproof's own
	Fetched   time.Time `json:"fetched"`           // when it entered the cache; zero for one of the user's own
}

// Store gets binaries. The zero value works and uses the user's cache. A Store in use must not be
// copied or changed. Its methods may be called concurrently. Several processes may share a
// directory.
type Store struct {
	// Dir is the root of the cache; "" means DefaultDir.
	Dir string
	// Overrides replace all other origins. nil means none.
	Overrides Overrides
	// Progress receives whole lines about the progress. nil means silence.
	Progress io.Writer
	// KubernetesURL and EtcdURL serve the releases; "" means the official place.
	KubernetesURL, EtcdURL string
	// Next are binaries that are got one after the other. While the Store builds one of them, it
	// downloads the modules of those that are missing. nil means none.
	Next []Ref
	// Go is the go command for builds. "" means the one in PATH. It gets the user's environment
	// (GOPROXY, GOSUMDB, GOTOOLCHAIN, …), except for variables that would change the result.
	Go string
	// Planted is the name of a defect that is built into servers with the reference proxy
	// (proxy/apiserver, planted.go), for tests. A Store with it needs a Dir of its own.
	Planted string

	mu     sync.Mutex // serializes Progress
	limits limits
}

// limits are the timeouts of a Store. Zero fields mean the default; tests have shorter ones.
type limits struct {
	headers  time.Duration // until response headers
	checksum time.Duration // for the whole checksum file
	stall    time.Duration // without a byte of the body
	progress time.Duration
}

// DefaultDir returns skewproof/binaries in the user's cache directory ($XDG_CACHE_HOME, or
// ~/.cache).
func DefaultDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: find the user's cache directory: %w; set XDG_CACHE_HOME", ErrUnavailable, err)
	}
	return filepath.Join(dir, "skewproof", "binaries"), nil
}

// platform returns the platform of the binaries: that of this process, which runs them.
func platform() string { return runtime.GOOS + "-" + runtime.GOARCH }

// Get returns the binary of a component and version. If the binary is not cached, Get fetches it,
// which takes seconds for a download and minutes for a build. The error wraps [ErrBadVersion] or
// [ErrBadRef] if the name is wrong (then Get has done nothing), [ErrUnavailable] if there is no
// such binary, or the cause of ctx. When ctx ends, Get stops everything and leaves nothing behind.
func (s *Store) Get(ctx context.Context, c Component, version string) (Binary, error) {
	ref, err := NewRef(c, version)
	if err != nil {
		return Binary{}, err
	}
	if path, ok := s.Overrides[ref]; ok {
		return useOverride(ctx, ref, path, s.progress(ref))
	}
	dir, err := s.dir()
	if err != nil {
		return Binary{}, err
	}
	// The usual case takes no lock, so that it works with a read-only cache. A damaged entry is
	// found again under the lock, and reported then.
	if b, err := readEntry(dir, ref); err == nil {
		return b, nil
	}

	p := s.progress(ref)
	unlock, err := s.lock(ctx, dir, ref.Name(), p)
	if err != nil {
		return Binary{}, fmt.Errorf("%s: %w", ref, err)
	}
	defer unlock()
	b, err := readEntry(dir, ref)
	if err == nil {
		return b, nil
	}
	if !errors.Is(err, errNotCached) {
		p.say("the cached file is refused and fetched again: %v", err)
	}
	b, err = s.fetch(ctx, dir, ref, p)
	switch {
	case ctx.Err() != nil && err != nil:
		return Binary{}, fmt.Errorf("%s: get it: %w", ref, context.Cause(ctx))
	case errors.As(err, new(*UnavailableError)): // it has its own headline
		return Binary{}, err
	case err != nil:
		return Binary{}, fmt.Errorf("%s: %w", ref, err)
	}
	return b, nil
}

// fetch tries the origins of a binary that is not in the cache. The caller holds the lock of ref.
func (s *Store) fetch(ctx context.Context, dir string, ref Ref, p progress) (Binary, error) {
	work, err := newWorkspace(dir, ref)
	if err != nil {
		return Binary{}, &cacheError{dir: dir, err: err}
	}
	defer work.remove()

	origins := []struct {
		origin Origin
		get    func(context.Context, Ref, workspace, progress) (Binary, error) // sets How and Seconds
	}{
		{OriginDownload, s.download},
		{OriginBuild, s.build},
	}
	failure := &UnavailableError{Ref: ref}
	for _, from := range origins {
		if of := programs[ref.Component]; from.origin == OriginDownload && (!of.download || of.tests()) { // an archive has the tests
			continue
		}
		got, err := from.get(ctx, ref, work, p)
		if err == nil {
			err = checkVersion(ctx, ref, work.binary())
		}
		if err == nil {
			if errors.Is(failure, errChecksum) {
				got.How += "; the official release had a WRONG CHECKSUM and was not used"
			}
			got.Origin = from.origin
			b, err := writeEntry(dir, ref, work, got)
			if err != nil {
				return Binary{}, &cacheError{dir: dir, err: err}
			}
			p.say("ready, %s, %s", megabytes(b.Size), b.How)
			return b, nil
		}
		if ctx.Err() != nil {
			return Binary{}, context.Cause(ctx)
		}
		if diskFull(err) {
			return Binary{}, &cacheError{dir: dir, err: err}
		}
		if from.origin == OriginDownload {
			p.say("not downloaded: %s", firstLine(err.Error()))
		}
		failure.Attempts = append(failure.Attempts, Attempt{Origin: from.origin, Err: err})
		if err := work.reset(); err != nil {
			return Binary{}, &cacheError{dir: dir, err: err}
		}
	}
	return Binary{}, failure
}

func (s *Store) dir() (string, error) {
	if s.Dir == "" {
		return DefaultDir()
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return "", fmt.Errorf("%w: find the working directory: %w", ErrUnavailable, err)
	}
	return dir, nil
}

func (s *Store) progress(ref Ref) progress {
	return progress{mu: &s.mu, w: s.Progress, ref: ref, every: cmp.Or(s.limits.progress, progressInterval), bar: isTerminal(s.Progress)}
}
