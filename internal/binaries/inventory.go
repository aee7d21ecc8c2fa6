package binaries

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/semver"
)

// List returns the binaries in the cache, of all platforms, by component and then from the oldest
// version to the newest. It does not check hashes. The error names damaged entries, which are not
// in the list. If the cache does not exist yet, the list is empty.
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

// Prune removes from the cache all binaries except those to keep, of all platforms. It also removes
// damaged entries and files of killed processes. It returns the removed binaries. A binary that
// another process is fetching stays, and the error names it. A running binary continues to run.
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
	leftovers, err := fs.Glob(os.DirFS(dir), tmpDir+"/*")
	failed = append(failed, err)
	for _, path := range leftovers {
		ref, err := ParseRef(filepath.Base(path))
		if err == nil {
			err = removeLocked(dir, ref, filepath.Join(dir, path))
		}
		failed = append(failed, err)
	}
	return removed, errors.Join(failed...)
}

// removeLocked removes one directory unless a process is fetching its binary.
func removeLocked(dir string, ref Ref, path string) error {
	l, held, err := tryLock(dir, ref.Name())
	if err != nil {
		return &cacheError{dir: dir, err: err}
	}
	if !held {
		return fmt.Errorf("%s is not removed: %s", ref, lockHolder(l.Path(), ref.Name()))
	}
	defer func() { _ = l.Unlock() }()
	if err := os.RemoveAll(path); err != nil {
		return &cacheError{dir: dir, err: err}
	}
	// This removes the directory of the version with its last platform, and fails before.
	_ = os.Remove(filepath.Join(dir, string(ref.Component), string(ref.Version)))
	return nil
}

// entryDirs returns the <component>/<version>/<platform> directories.
func entryDirs(dir string) ([]string, error) {
	var found []string
	for _, c := range Components() {
		entries, err := fs.Glob(os.DirFS(dir), string(c)+"/v*/*-*")
		if err != nil {
			return nil, fmt.Errorf("read the cache %s: %w", dir, err)
		}
		for _, entry := range entries {
			found = append(found, filepath.Join(dir, entry))
		}
	}
	return found, nil
}
