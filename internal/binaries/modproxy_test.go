package binaries

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// published has very small modules in place of the real ones. So a test makes a real build with the
// real arguments, in seconds and on loopback only. One module that no program needs is missing.
var published = map[string]map[string]string{
	"k8s.io/kubernetes@" + testVersion: {
		"go.mod": `module k8s.io/kubernetes

go 1.24.0

godebug panicnil=1

require (
	k8s.io/client-go v0.0.0
	k8s.io/component-base v0.0.0
	k8s.io/sample-apiserver v0.0.0
)

replace (
	k8s.io/client-go => ./staging/src/k8s.io/client-go
	k8s.io/component-base => ./staging/src/k8s.io/component-base
	k8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver
)
`,
		"cmd/kube-apiserver/apiserver.go": `package main

import (
	client "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/version"
)

func main() {
	println("Kubernetes " + version.Get())
	println("client-go " + client.Get())
}
`,
		// Its package has no main function, and its tests import a package that no other part
		// needs.
		"test/e2e/e2e.go": "package e2e\n",
		"test/e2e/e2e_test.go": `package e2e

import (
	"os"
	"strings"
	"testing"

	"k8s.io/component-base/version"
)

func TestMain(*testing.M) {
	gitVersion, _, _ := strings.Cut(version.Get(), "\n")
	os.Stdout.WriteString(gitVersion + "\n")
}
`,
	},
	"k8s.io/client-go@v0.36.3":      {"go.mod": "module k8s.io/client-go\n\ngo 1.24.0\n", "pkg/version/version.go": versionPackage},
	"k8s.io/component-base@v0.36.3": {"go.mod": "module k8s.io/component-base\n\ngo 1.24.0\n", "version/version.go": versionPackage},

	// One release does not compile, and another one lacks a staging module.
	"k8s.io/kubernetes@v1.36.4": {"go.mod": "module k8s.io/kubernetes\n\ngo 1.24.0\n", "cmd/kube-apiserver/apiserver.go": "package main\n\nfunc main() { undefinedOfUpstream() }\n"},
	"k8s.io/kubernetes@v1.36.5": {
		"go.mod": `module k8s.io/kubernetes

go 1.24.0

require k8s.io/component-base v0.0.0

replace k8s.io/component-base => ./staging/src/k8s.io/component-base
`,
		"cmd/kube-apiserver/apiserver.go": "package main\n\nimport _ \"k8s.io/component-base/version\"\n\nfunc main() {}\n",
	},
	// A release for a Go that is still to come.
	"k8s.io/kubernetes@v1.99.0": {"go.mod": "module k8s.io/kubernetes\n\ngo 1.999.0\n", "cmd/kube-apiserver/apiserver.go": "package main\n\nfunc main() {}\n"},

	"go.etcd.io/etcd/server/v3@" + DefaultEtcd: {
		"go.mod":             "module go.etcd.io/etcd/server/v3\n\ngo 1.24.0\n",
		"etcdmain/main.go":   "package etcdmain\n\nfunc Main(args []string) { print(\"etcd Version: " + strings.TrimPrefix(DefaultEtcd, "v") + "-\", len(args), \"\\n\") }\n",
		"etcdmain/README.md": "etcd",
	},

	// Says in its version whether it was built with a tag.
	"github.com/containerd/containerd/v2@v2.3.4": {
		"go.mod":             "module github.com/containerd/containerd/v2\n\ngo 1.24.0\n",
		"version/version.go": "package version\n\nvar Version = \"unknown\"\n",
		"cmd/containerd/main.go": `package main

import "github.com/containerd/containerd/v2/version"

var btrfs = "with btrfs"

func main() { println("containerd github.com/containerd/containerd/v2 " + version.Version + " " + btrfs) }
`,
		"cmd/containerd/nobtrfs.go": "//go:build no_btrfs\n\npackage main\n\nfunc init() { btrfs = \"without btrfs\" }\n",
	},
}

// commits has the commits that the module proxy reports as the origins of modules.
var commits = map[string]string{"k8s.io/kubernetes@" + testVersion: strings.Repeat("0123456789", 4)}

const versionPackage = `package version

var gitVersion, gitMajor, gitMinor, gitTreeState, gitCommit = "v0.0.0-master", "", "", "", "unknown"

func Get() string { return gitVersion + "\n" + gitMajor + "." + gitMinor + " " + gitTreeState + " " + gitCommit }
`

// goEnvironment makes the go command use the published modules, and of this machine only the cache
// of compiled packages. It skips the test if there is no go command.
func goEnvironment(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("needs the go command: %v", err)
	}
	t.Setenv("GOPROXY", serve(t, http.FileServer(http.Dir(moduleProxy(t))).ServeHTTP))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOTOOLCHAIN", "local")
	modules := t.TempDir()
	t.Setenv("GOMODCACHE", modules)
	t.Cleanup(func() {
		// The go command makes the module cache read-only.
		_ = filepath.WalkDir(modules, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o755)
			}
			return err
		})
	})
}

// moduleProxy writes the published modules as a module proxy serves them (go.dev/ref/mod, "GOPROXY
// protocol").
func moduleProxy(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, files := range published {
		path, version, _ := strings.Cut(name, "@")
		dir := filepath.Join(root, filepath.FromSlash(path), "@v")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var contents []modzip.File
		for file, text := range files {
			contents = append(contents, memoryFile{file, text})
		}
		var zipped bytes.Buffer
		if err := modzip.Create(&zipped, module.Version{Path: path, Version: version}, contents); err != nil {
			t.Fatal(err)
		}
		info := fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T03:04:05Z","Origin":{"VCS":"git","Hash":%q}}`, version, commits[name])
		for suffix, text := range map[string]string{".info": info, ".mod": files["go.mod"], ".zip": zipped.String()} {
			if err := os.WriteFile(filepath.Join(dir, version+suffix), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// memoryFile is a file of a module and its own os.FileInfo.
type memoryFile struct{ path, text string }

func (f memoryFile) Path() string                { return f.path }
func (f memoryFile) Lstat() (os.FileInfo, error) { return f, nil }
func (f memoryFile) Open() (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(f.text)), nil
}
func (f memoryFile) Name() string       { return filepath.Base(f.path) }
func (f memoryFile) Size() int64        { return int64(len(f.text)) }
func (f memoryFile) Mode() fs.FileMode  { return 0o644 }
func (f memoryFile) ModTime() time.Time { return time.Time{} }
func (f memoryFile) IsDir() bool        { return false }
func (f memoryFile) Sys() any           { return nil }
