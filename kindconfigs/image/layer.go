package main

import (
	"archive/tar"
	"cmp"
	"io"
	"os"
	"path"
	"slices"
	"time"
)

// file is a regular file that goes into an image.
type file struct {
	name    string // path without a leading slash
	mode    int64
	from    string // the file to copy; "": content
	content []byte
}

// writeLayer writes files and the directories above them as a tar archive, owned by root and always the same for the same files.
func writeLayer(w io.Writer, files []file) error {
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
	t := tar.NewWriter(w)
	written := map[string]bool{}
	for _, f := range files {
		if err := writeDirs(t, path.Dir(f.name), written); err != nil {
			return err
		}
		if err := writeFile(t, f); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeDirs(t *tar.Writer, dir string, written map[string]bool) error {
	if dir == "." || written[dir] {
		return nil
	}
	written[dir] = true
	if err := writeDirs(t, path.Dir(dir), written); err != nil {
		return err
	}
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
}

func writeFile(t *tar.Writer, f file) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}
	if f.from == "" {
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		_, err := t.Write(f.content)
		return err
	}
	in, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(t, in)
	return err
}
