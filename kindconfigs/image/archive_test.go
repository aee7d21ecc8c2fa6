package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// entry is one of a tar archive.
type entry struct {
	header *tar.Header
	text   []byte
}

func readTar(t *testing.T, r io.Reader) (names []string, entries map[string]entry) {
	t.Helper()
	entries = map[string]entry{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names, entries
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		names, entries[h.Name] = append(names, h.Name), entry{h, text}
	}
}

func TestWriteLayer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("ELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []file{
		{name: "usr/local/bin/p", mode: 0o755, from: program},
		{name: "etc/a", mode: 0o644, content: []byte("a")},
		{name: "usr/local/b", mode: 0o644},
	}
	var layer bytes.Buffer
	if err := writeLayer(&layer, files); err != nil {
		t.Fatal(err)
	}
	first := bytes.Clone(layer.Bytes())
	names, entries := readTar(t, &layer)
	// A directory comes before its files, and each appears once.
	if want := []string{"etc/", "etc/a", "usr/", "usr/local/", "usr/local/b", "usr/local/bin/", "usr/local/bin/p"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if p := entries["usr/local/bin/p"]; p.header.Mode != 0o755 || string(p.text) != "ELF" || p.header.Uid != 0 || p.header.Gid != 0 {
		t.Errorf("got %+v, %q", p.header, p.text)
	}
	if a := entries["etc/a"]; a.header.Mode != 0o644 || string(a.text) != "a" {
		t.Errorf("got %+v, %q", a.header, a.text)
	}
	slices.Reverse(files)
	layer.Reset()
	if err := writeLayer(&layer, files); err != nil || !bytes.Equal(layer.Bytes(), first) {
		t.Errorf("the order of the files makes a difference: %v", err)
	}
	if err := writeLayer(io.Discard, []file{{name: "x", from: program + "-not-there"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: got %v", err)
	}
}

// containerd refuses an archive in which any of these does not fit the other.
func TestWriteArchive(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "some-binary")
	if err := os.WriteFile(program, []byte("ELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "image.tar")
	if err := writeArchive(to, "registry.k8s.io/etcd:3.6.8-0", program, "etcd"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	_, entries := readTar(t, bytes.NewReader(text))
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(entries["manifest.json"].text, &manifest); err != nil || len(manifest) != 1 || len(manifest[0].Layers) != 1 {
		t.Fatalf("%v: %s", err, entries["manifest.json"].text)
	}
	m := manifest[0]
	if !slices.Equal(m.RepoTags, []string{"registry.k8s.io/etcd:3.6.8-0"}) {
		t.Errorf("it is called %v", m.RepoTags)
	}
	if sum := sha256.Sum256(entries[m.Config].text); m.Config != hex.EncodeToString(sum[:])+".json" {
		t.Errorf("the configuration is called %s, and its SHA-256 is %x", m.Config, sum)
	}
	var config imageConfig
	if err := json.Unmarshal(entries[m.Config].text, &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/etcd"}) || config.OS != "linux" {
		t.Errorf("got %+v", config)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(entries[m.Layers[0]].text))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); !slices.Equal(config.RootFS.DiffIDs, []string{want}) {
		t.Errorf("the layer is %s, the configuration says %v", want, config.RootFS.DiffIDs)
	}
	_, inLayer := readTar(t, bytes.NewReader(layer))
	if p := inLayer["usr/local/bin/etcd"]; p.header == nil || string(p.text) != "ELF" || p.header.Mode != 0o755 {
		t.Errorf("the layer holds %+v", inLayer)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
