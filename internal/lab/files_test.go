package lab

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// save writes a value as compressed JSON. Equal values give equal bytes.
func save(t testing.TB, file string, value any) {
	t.Helper()
	encoded, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, func(w io.Writer) error {
		_, err := w.Write(append(encoded, '\n'))
		return err
	})
}

// write writes a compressed file.
func write(t testing.TB, file string, to func(io.Writer) error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	w, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := to(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// read reads a compressed file.
func read(t testing.TB, file string, from func(io.Reader) error) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := from(r); err != nil {
		t.Fatal(err)
	}
}

// load reads what save wrote.
func load(t testing.TB, file string, value any) {
	t.Helper()
	read(t, file, func(r io.Reader) error { return json.NewDecoder(r).Decode(value) })
}
