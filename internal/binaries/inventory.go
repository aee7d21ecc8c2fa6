package binaries

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/mod/semver"
)

// List returns the binaries in the cache, of all platforms, by component and then from the oldest
// version to the newest. It does not hash. The error names damaged entries, which are not in the
// list. A cache that does not exist yet is empty.
func (s *Store) List() ([]Binary, error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	var list []Binary
	var damaged []error
	entries, err := entryDirs(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		b, err := describeEntry(entry)
		if err != nil {
			damaged = append(damaged, fmt.Errorf("the cache entry %s is damaged: %w", entry, err))
			continue
		}
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b Binary) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), semver.Compare(a.Version, b.Version), cmp.Compare(a.Platform, b.Platform))
	})
	return list, errors.Join(damaged...)
}

// Prune removes from the cache all binaries but those to keep, of all platforms, damaged entries,
// and what killed processes have left. It returns what it removed. A binary that another process is
// fetching stays, and the error names it. A binary that is being executed runs on.
func (s *Store) Prune(keep ...Ref) ([]Binary, error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	entries, err := entryDirs(dir)
	if err != nil {
		return nil, err
	}
	var removed []Binary
	var failed []error
	for _, entry := range entries {
		b, err := describeEntry(entry)
		version := filepath.Dir(entry)
		ref := Ref{Component(filepath.Base(filepath.Dir(version))), Version(filepath.Base(version))}
		if err == nil && slices.Contains(keep, ref) {
			continue
		}
		err = removeLocked(dir, ref, entry)
		if err == nil && b.Path != "" {
			removed = append(removed, b)
		}
		failed = append(failed, err)
	}
	leftovers, err := filepath.Glob(filepath.Join(globEscape(dir), tmpDir, "*"))
	failed = append(failed, err)
	for _, path := range leftovers {
		ref, err := ParseRef(filepath.Base(path))
		if err == nil {
			err = removeLocked(dir, ref, path)
		}
		failed = append(failed, err)
	}
	return removed, errors.Join(failed...)
}

// removeLocked removes one directory unless a process is fetching its binary.
func removeLocked(dir string, ref Ref, path string) error {
	lockPath := filepath.Join(dir, locksDir, lockName(ref)+".lock")
	if err := os.MkdirAll(filepath.Dir(lockPath), 0o755); err != nil {
		return &cacheError{dir: dir, err: err}
	}
	l := flock.New(lockPath)
	held, err := l.TryLock()
	if err != nil {
		return &cacheError{dir: dir, err: err}
	}
	if !held {
		return fmt.Errorf("%s is not removed: %s", ref, lockHolder(lockPath, lockName(ref)))
	}
	defer func() { _ = l.Unlock() }()
	if err := os.RemoveAll(path); err != nil {
		return &cacheError{dir: dir, err: err}
	}
	// This removes the directory of the version with its last platform, and fails before.
	_ = os.Remove(filepath.Join(dir, string(ref.Component), string(ref.Version)))
	return nil
}

// entryDirs finds the <component>/<version>/<platform> directories.
func entryDirs(dir string) ([]string, error) {
	var found []string
	for _, c := range Components() {
		entries, err := filepath.Glob(filepath.Join(globEscape(dir), string(c), "v*", "*-*"))
		if err != nil {
			return nil, fmt.Errorf("read the cache %s: %w", dir, err)
		}
		found = append(found, entries...)
	}
	return found, nil
}

// globEscape makes a directory name stand for itself in a pattern.
func globEscape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
