package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// The layout of a cache:
//
//	<component>/<version>/<os>-<arch>/<component>   the binary
//	<component>/<version>/<os>-<arch>/origin.json   its record: origin, hash, size
//	.locks/<component>@<version>.lock, .locks/build.lock
//	.tmp/<component>@<version>/                     workspace of the process that holds the lock
const (
	locksDir   = ".locks"
	tmpDir     = ".tmp"
	originFile = "origin.json"
)

// errNotCached means that the cache has no such entry. For a damaged entry there is another error.
var errNotCached = errors.New("not in the cache")

func entryDir(dir string, ref Ref) string {
	return filepath.Join(dir, string(ref.Component), string(ref.Version), platform())
}

// readEntry returns a cached binary after it has checked its hash, because size and time alone
// would not show lost blocks. For a kube-apiserver this takes 0.1 to 0.3 s. The binary is then in
// the page cache, so it starts faster.
func readEntry(dir string, ref Ref) (Binary, error) {
	b, err := describeEntry(entryDir(dir, ref))
	if err != nil {
		return Binary{}, err
	}
	if b.Component != ref.Component || b.Version != string(ref.Version) || b.Platform != platform() {
		return Binary{}, fmt.Errorf("%s is about %s %s for %s", originFile, b.Component, b.Version, b.Platform)
	}
	if b.Source != SourceHash(ref) {
		return Binary{}, fmt.Errorf("%s was built from another source than this skewproof has", b.Path)
	}
	sum, _, err := hashFile(b.Path)
	if err != nil {
		return Binary{}, err
	}
	if sum != b.SHA256 {
		return Binary{}, fmt.Errorf("%s has the SHA-256 %s, it was written with %s", b.Path, sum, b.SHA256)
	}
	return b, nil
}

// describeEntry reads the record of a cached binary, and not the binary.
func describeEntry(entry string) (Binary, error) {
	if _, err := os.Lstat(entry); errors.Is(err, os.ErrNotExist) {
		return Binary{}, errNotCached
	}
	text, err := os.ReadFile(filepath.Join(entry, originFile))
	if err != nil {
		return Binary{}, err
	}
	var b Binary
	if err := json.Unmarshal(text, &b); err != nil {
		return Binary{}, fmt.Errorf("read %s: %w", filepath.Join(entry, originFile), err)
	}
	if _, err := ParseComponent(string(b.Component)); err != nil {
		return Binary{}, fmt.Errorf("%s: %w", filepath.Join(entry, originFile), err)
	}
	b.Path, b.Origin = filepath.Join(entry, string(b.Component)), OriginCache
	info, err := os.Lstat(b.Path)
	switch {
	case err != nil:
		return Binary{}, err
	case !info.Mode().IsRegular() || info.Mode()&0o100 == 0:
		return Binary{}, fmt.Errorf("%s is not an executable file", b.Path)
	case info.Size() != b.Size:
		return Binary{}, fmt.Errorf("%s has %d bytes, it was written with %d", b.Path, info.Size(), b.Size)
	}
	return b, nil
}

// writeEntry moves a staged entry to its place in the cache in one rename, so that a reader sees
// the whole entry or none. It replaces a damaged entry.
// got says where the binary came from.
func writeEntry(dir string, ref Ref, work workspace, got Binary) (Binary, error) {
	if err := os.Chmod(work.binary(), 0o755); err != nil {
		return Binary{}, err
	}
	sum, size, err := hashFile(work.binary())
	if err != nil {
		return Binary{}, err
	}
	entry := entryDir(dir, ref)
	b := Binary{
		Component: ref.Component, Version: string(ref.Version), Platform: platform(), Path: filepath.Join(entry, work.name),
		Origin: got.Origin, How: got.How, SHA256: sum, Size: size, Seconds: got.Seconds, Source: SourceHash(ref),
		Fetched: time.Now().UTC().Truncate(time.Second),
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return Binary{}, err
	}
	record := filepath.Join(work.stage(), originFile)
	if err := os.WriteFile(record, append(text, '\n'), 0o644); err != nil {
		return Binary{}, err
	}
	for _, path := range []string{work.binary(), record, work.stage()} {
		if err := syncPath(path); err != nil {
			return Binary{}, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(entry), 0o755); err != nil {
		return Binary{}, err
	}
	if err := os.Rename(entry, work.path("replaced")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Binary{}, err
	}
	if err := os.Rename(work.stage(), entry); err != nil {
		return Binary{}, err
	}
	return b, syncPath(filepath.Dir(entry))
}

func hashFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// syncPath flushes a file, or the names in a directory, to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// workspace is a directory in the cache in which one binary is fetched. It is on the file system of
// the cache. Its name depends only on the binary, so that the next fetch clears it after a kill.
type workspace struct {
	root string
	name string // of the binary
}

func newWorkspace(dir string, ref Ref) (workspace, error) {
	w := workspace{root: filepath.Join(dir, tmpDir, ref.Name()), name: string(ref.Component)}
	return w, w.reset()
}

func (w workspace) path(name string) string { return filepath.Join(w.root, name) }
func (w workspace) stage() string           { return w.path("stage") }
func (w workspace) binary() string          { return filepath.Join(w.stage(), w.name) }

func (w workspace) reset() error {
	return errors.Join(os.RemoveAll(w.root), os.MkdirAll(w.stage(), 0o755))
}

// remove removes the workspace. It tries again for a short time, because killed processes may still
// create files.
func (w workspace) remove() {
	for range 20 {
		if os.RemoveAll(w.root) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// lockPoll is the interval at which lock tries again while another process holds the lock. It
// polls, because a wait in flock(2) cannot be cancelled.
const lockPoll = 200 * time.Millisecond

// lock takes the named lock of the cache. The lock excludes other processes and other goroutines of
// this process. While lock waits, it reports who holds the lock. The kernel releases the lock when
// its holder ends.
func (s *Store) lock(ctx context.Context, dir, name string, p progress) (unlock func(), err error) {
	l, held, err := tryLock(dir, name)
	if err == nil && !held {
		done := p.during("waiting for "+lockHolder(l.Path(), name), 0, nil)
		held, err = l.TryLockContext(ctx, lockPoll)
		done()
	}
	if ctx.Err() != nil {
		_ = l.Unlock()
		return nil, fmt.Errorf("%s: wait for the lock %q: %w", p.ref, name, context.Cause(ctx))
	}
	if err != nil || !held {
		return nil, &cacheError{dir: dir, err: fmt.Errorf("lock %s: %w", l.Path(), err)}
	}
	// The content is for people only.
	_ = os.WriteFile(l.Path(), fmt.Appendf(nil, "process %d, at work on %s since %s", os.Getpid(), p.ref, time.Now().Format(time.TimeOnly)),
		0o600)
	return func() {
		_ = os.Truncate(l.Path(), 0)
		_ = l.Unlock()
	}, nil
}

// tryLock takes a lock if it is free. The file is never removed, because another process may hold a
// lock on it.
func tryLock(dir, name string) (l *flock.Flock, held bool, err error) {
	l = flock.New(filepath.Join(dir, locksDir, name+".lock"))
	if err = os.MkdirAll(filepath.Dir(l.Path()), 0o755); err == nil {
		held, err = l.TryLock()
	}
	return l, held, err
}

func lockHolder(path, name string) string {
	holder, err := os.ReadFile(path)
	if err != nil || len(holder) == 0 {
		return fmt.Sprintf("another process (lock %q)", name)
	}
	return strings.TrimSpace(string(holder))
}
