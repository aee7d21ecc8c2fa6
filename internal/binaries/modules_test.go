package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

// While one binary is built, the modules of the next one are downloaded. Here the first build waits
// for that, so it would never end otherwise.
func TestTheNextModulesAreDownloadedDuringABuild(t *testing.T) {
	goEnvironment(t)
	dir := t.TempDir()
	listed := filepath.Join(dir, "listed")
	if err := syscall.Mkfifo(listed, 0o600); err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(dir, "go")
	text := `#!/bin/sh
if [ "$1" = build ]; then cat %[1]s; fi
go "$@" || exit
case "$1 $PWD" in "list "*/next-*) echo > %[1]s;; esac
`
	if err := os.WriteFile(command, fmt.Appendf(nil, text, listed), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, next := Ref{KubeAPIServer, testVersion}, Ref{Containerd, "v2.3.4"}
	s := newStore(t, "")
	s.Go, s.Next = command, []Ref{first, next}
	if b, err := s.Get(ctx, first.Component, string(first.Version)); err != nil || b.Origin != OriginBuild {
		t.Fatalf("got %+v, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("GOMODCACHE"), "github.com/containerd/containerd/v2@v2.3.4/cmd/containerd")); err != nil {
		t.Errorf("the source of %s is not there: %v", next, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, tmpDir, first.Name())); !os.IsNotExist(err) {
		t.Errorf("the workspace is still there: %v", err)
	}
}

// The store downloads no modules of binaries that it has, that the user gives, or that npm makes.
func TestOnlyMissingBinariesTakeModules(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	command := filepath.Join(t.TempDir(), "go")
	text := "#!/bin/sh\necho \"$4\" >> %[1]s.part\ncase \"$4\" in *@v1.38.0) mv %[1]s.part %[1]s;; esac\nexit 1\n"
	if err := os.WriteFile(command, fmt.Appendf(nil, text, asked), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, "")
	s.Overrides = Overrides{{Etcd, DefaultEtcd}: "/bin/true"}
	fill(t, s, KubeAPIServer, "v1.37.1")
	building := Ref{KubeAPIServer, testVersion}
	s.Next = []Ref{building, {KubeAPIServer, "v1.37.1"}, {Etcd, DefaultEtcd}, {ClientNode, "v1.4.0"}, {Kubectl, "v1.38.0"}}
	work, err := newWorkspace(s.Dir, building)
	if err != nil {
		t.Fatal(err)
	}
	stop := s.getModules(t.Context(), command, s.Dir, work, building)
	got := await(t, asked)
	stop()
	if want := "k8s.io/kubernetes@v1.38.0"; got != want {
		t.Errorf("asked for %q, want %q alone", got, want)
	}
}

// The go.mod of a build requires the staging modules that the program needs, its tests included.
func TestStagingModulesAreRequired(t *testing.T) {
	goEnvironment(t)
	for component, want := range map[Component][]string{
		KubeAPIServer: {"k8s.io/kubernetes v1.36.3", "k8s.io/client-go v0.36.3", "k8s.io/component-base v0.36.3"},
		E2ETest:       {"k8s.io/kubernetes v1.36.3", "k8s.io/component-base v0.36.3"},
	} {
		tool, _, _, err := prepareBuild(t.Context(), "go", t.TempDir(), Ref{component, testVersion}, (&Store{}).progress(Ref{}))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(tool.dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := modfile.Parse("go.mod", text, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range m.Require {
			got = append(got, r.Mod.Path+" "+r.Mod.Version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the go.mod requires %q, want %q", component, got, want)
		}
	}
}
