package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

func TestProxyImage(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		to := filepath.Join(t.TempDir(), "image.tar")
		if err := writeProxyImage(to, []string{staticProgram(t)}); err != nil { // each in a separate directory
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(to); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same source in two directories gave two images")
	}

	_, entries := readTar(t, bytes.NewReader(archives[0]))
	var manifests []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(entries["manifest.json"].text, &manifests); err != nil || len(manifests) != 1 {
		t.Fatalf("manifest.json: %v\n%s", err, entries["manifest.json"].text)
	}
	var config imageConfig
	if err := json.Unmarshal(entries[manifests[0].Config].text, &config); err != nil {
		t.Fatal(err)
	}
	if config.Config.User != proxyUser || !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/skewproof"}) {
		t.Errorf("the image runs %v as %q", config.Config.Entrypoint, config.Config.User)
	}
	if !slices.Equal(manifests[0].RepoTags, []string{kind.OperatorImage}) {
		t.Errorf("the image is called %v, and the static pod runs %s", manifests[0].RepoTags, kind.OperatorImage)
	}

	unzipped, err := gzip.NewReader(bytes.NewReader(entries[manifests[0].Layers[0]].text))
	if err != nil {
		t.Fatal(err)
	}
	names, files := readTar(t, unzipped)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "/") })
	if want := []string{"usr/local/bin/skewproof", modulesFile}; !slices.Equal(names, want) {
		t.Errorf("the image has %v in it, want %v", names, want)
	}
	if text := string(files[modulesFile].text); !strings.Contains(text, "example.com/tiny") {
		t.Errorf("the list of modules does not name the main module:\n%s", text)
	}
}

func TestProxyImageNeedsAStaticProgram(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for name, args := range map[string][]string{
		"no argument": nil, "not there": {filepath.Join(t.TempDir(), "none")}, "not made by Go": {shell}, "two": {shell, shell},
	} {
		to := filepath.Join(t.TempDir(), "image.tar")
		if err := writeProxyImage(to, args); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: an image was written", name)
		}
	}
	if err := static(shell); err == nil || !strings.Contains(err.Error(), "dynamically") {
		t.Errorf("a program with a dynamic linker: got %v", err)
	}
}

// staticProgram builds a small static program.
func staticProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "tiny")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build a small program: %v\n%s", err, out)
	}
	return program
}
