package binaries

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// extractFile writes one entry of a .tar.gz to a new file. It reads the whole archive, and refuses
// the archive if any entry has a path outside the directory, because no release process makes such
// an archive.
func extractFile(archive, entry, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	found := false
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("refused: the entry %q points out of the archive", h.Name)
		}
		if filepath.Clean(h.Name) != entry {
			continue
		}
		if h.Typeflag != tar.TypeReg || h.Size > maxDownload {
			return fmt.Errorf("refused: the entry %q is not a file of at most %s", h.Name, megabytes(maxDownload))
		}
		if found {
			return fmt.Errorf("refused: it has %q twice", entry)
		}
		found = true
		if err := writeFile(to, r); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("it has no entry %q", entry)
	}
	return nil
}

func writeFile(to string, r io.Reader) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
