package reports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// These are the names of the files of a report.
const (
	HTMLFile  = "report.html"
	JSONFile  = "report.json"
	JUnitFile = "junit.xml"
)

// WriteAll writes the report into dir as [HTMLFile], [JSONFile] and [JUnitFile]. It makes dir if
// dir does not exist.
//
// No reader sees half a file: WriteAll writes and syncs each file under a temporary name, and
// renames files only when all are written. If there is an error, files of an earlier report
// survive. The error says what to do.
func WriteAll(dir string, r RunReport) error {
	return save(dir, r, []rendering[RunReport]{{JSONFile, writeIndented[RunReport]}, {JUnitFile, WriteJUnit}, {HTMLFile, WriteHTML}})
}

type file struct {
	path    string
	content []byte
}

// replace writes all files or none, as far as a file system without transactions allows.
func replace(files []file) (err error) {
	staged := make([]string, 0, len(files))
	defer func() {
		for _, name := range staged {
			if err != nil {
				err = errors.Join(err, ignoreMissing(os.Remove(name)))
			}
		}
	}()
	for _, f := range files {
		name, err := stage(f)
		if name != "" {
			staged = append(staged, name)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w%s", f.path, err, wayOut(err))
		}
	}
	for n, f := range files {
		if err := os.Rename(staged[n], f.path); err != nil {
			return fmt.Errorf("write %s: %w%s", f.path, err, wayOut(err))
		}
	}
	return syncDir(filepath.Dir(files[0].path))
}

// WriteNew writes a file that must not exist yet, whole or not at all. The error says what to do.
func WriteNew(path string, content []byte) error {
	staged, err := stage(file{path, content})
	if err == nil {
		err = os.Link(staged, path) // unlike a rename, it never replaces a file
	}
	if staged != "" {
		err = errors.Join(err, ignoreMissing(os.Remove(staged)))
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("write %s: it exists, and is not written over; choose another name, or remove it", path)
	case err != nil:
		return fmt.Errorf("write %s: %w%s", path, err, wayOut(err))
	}
	return syncDir(filepath.Dir(path))
}

// Write writes a file, whole or not at all. It replaces an existing file. The error says what to
// do.
func Write(path string, content []byte) error { return replace([]file{{path, content}}) }

// stage writes and syncs a temporary file in the directory of the file that it will replace, so
// that both are on the same file system.
func stage(f file) (name string, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+".*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, tmp.Close()) }()
	if _, err := tmp.Write(f.content); err != nil {
		return tmp.Name(), err
	}
	// CreateTemp makes files that only their owner can read, but a report is made to be shown.
	if err := tmp.Chmod(0o644); err != nil {
		return tmp.Name(), err
	}
	return tmp.Name(), tmp.Sync()
}

// syncDir makes renames durable. File systems that cannot sync a directory return EINVAL.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// wayOut says what to do about an error of the file system.
func wayOut(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return ": free some space, or choose an output directory on another file system; the saved history can be judged again"
	case errors.Is(err, syscall.EROFS), errors.Is(err, os.ErrPermission):
		return ": choose an output directory that can be written to"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, os.ErrExist):
		return ": a file is in the way; choose another output directory"
	default:
		return ""
	}
}
