package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
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

	tags, config, layer := readImage(t, archives[0])
	if config.Config.User != proxyUser || !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/skewproof"}) {
		t.Errorf("the image runs %v as %q", config.Config.Entrypoint, config.Config.User)
	}
	if !slices.Equal(tags, []string{kind.OperatorImage}) {
		t.Errorf("the image is called %v, and the static pod runs %s", tags, kind.OperatorImage)
	}
	names, files := readTar(t, layer)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "/") })
	if want := []string{"usr/local/bin/skewproof", modulesFile}; !slices.Equal(names, want) {
		t.Errorf("the image has %v in it, want %v", names, want)
	}
	if text := string(files[modulesFile].text); !strings.Contains(text, "example.com/tiny") {
		t.Errorf("the list of modules does not name the main module:\n%s", text)
	}
}

// A release has images for several architectures, made on one machine.
func TestProxyImageOfARelease(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		to := filepath.Join(t.TempDir(), "image.tar")
		if err := writeProxyImage(to, []string{releasedProgram(t, arch)}); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		tags, config, _ := readImage(t, archive)
		if config.Architecture != arch || config.OS != "linux" {
			t.Errorf("the image of a program for linux/%s says that it is for %s/%s", arch, config.OS, config.Architecture)
		}
		if !slices.Equal(tags, []string{kind.OperatorImage, "skewproof/proxy:v0.3.0"}) {
			t.Errorf("the image of v0.3.0 is called %v", tags)
		}
		if got := config.Config.Labels["org.opencontainers.image.version"]; got != "v0.3.0" {
			t.Errorf("the label of the version is %q, want v0.3.0", got)
		}
		if got := config.Config.Labels["org.opencontainers.image.revision"]; len(got) != 40 {
			t.Errorf("the label of the revision is %q, want a commit", got)
		}
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

// readImage returns the tags, the configuration and the only layer of an image.
func readImage(t *testing.T, archive []byte) (tags []string, config imageConfig, layer io.Reader) {
	t.Helper()
	_, entries := readTar(t, bytes.NewReader(archive))
	var manifests []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(entries["manifest.json"].text, &manifests); err != nil || len(manifests) != 1 || len(manifests[0].Layers) != 1 {
		t.Fatalf("manifest.json: %v\n%s", err, entries["manifest.json"].text)
	}
	if err := json.Unmarshal(entries[manifests[0].Config].text, &config); err != nil {
		t.Fatal(err)
	}
	layer, err := gzip.NewReader(bytes.NewReader(entries[manifests[0].Layers[0]].text))
	if err != nil {
		t.Fatal(err)
	}
	return manifests[0].RepoTags, config, layer
}

// staticProgram builds a small static program.
func staticProgram(t *testing.T) string {
	t.Helper()
	return build(t, tinyModule(t), "-buildvcs=false")
}

// releasedProgram builds a small static program from a repository of git whose only commit has the
// tag v0.3.0.
func releasedProgram(t *testing.T, arch string) string {
	t.Helper()
	dir := tinyModule(t)
	for _, words := range [][]string{
		{"init", "--quiet"}, {"add", "."},
		{"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--no-gpg-sign", "--message", "x"},
		{"tag", "--no-sign", "v0.3.0"},
	} {
		git := exec.CommandContext(t.Context(), "git", words...)
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	t.Setenv("GOOS", "linux")
	t.Setenv("GOARCH", arch)
	return build(t, dir, "-buildvcs=true")
}

// tinyModule writes the smallest program that there is.
func tinyModule(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// build builds the program in dir, and returns its path.
func build(t *testing.T, dir, flag string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "tiny")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", flag, "-o", program, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a small program: %v\n%s", err, out)
	}
	return program
}
