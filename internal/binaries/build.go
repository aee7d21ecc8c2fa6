package binaries

import (
	"cmp"
	"context"
	"debug/buildinfo"
	_ "embed" // for the source of a program
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// firstEtcdModule is the first version whose server is a module under its import path.
const firstEtcdModule = "v3.5.0"

// buildLock is held during every build. Two builds at once take as long as one after the other, and
// twice the memory.
const buildLock = "build"

// etcdMain replaces etcd's own main.go, whose module is not published under its import path.
const etcdMain = `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`

// flagsMain writes the flags and the feature gates of a kube-apiserver.
//
//go:embed _flags/main.go
var flagsMain string

// noDWARF makes the compiler leave out the debug information, which the linker would drop (-w).
const noDWARF = "-gcflags=all=-dwarf=false"

// downloadedModule has the used fields of the output of "go mod download -json".
type downloadedModule struct {
	GoMod  string // path of the cached go.mod
	Error  string
	Origin *struct{ Hash string } // nil if the module proxy does not send it
}

// build builds a binary from modules of the Go module proxy, and stages it. The user's checksum
// database verifies the modules.
func (s *Store) build(ctx context.Context, ref Ref, work workspace, p progress) (got Binary, err error) {
	if ref.Component == Etcd && semver.Compare(string(ref.Version), firstEtcdModule) < 0 {
		return got, fmt.Errorf("etcd can be built from modules since %s only", firstEtcdModule)
	}
	if _, err := source(ref); err != nil {
		return got, err
	}
	if programs[ref.Component].npm {
		return s.buildNode(ctx, ref, work, p)
	}
	path, err := exec.LookPath(cmp.Or(s.Go, "go"))
	if err != nil {
		return got, fmt.Errorf("it takes the go command, which is not there: %w; install Go (https://go.dev/dl)", err)
	}
	dir, err := s.dir()
	if err != nil {
		return got, err
	}
	unlock, err := s.lock(ctx, dir, buildLock, p)
	if err != nil {
		return got, err
	}
	defer unlock()

	tool, pkg, commit, err := prepareBuild(ctx, path, work.root, ref, p)
	if err != nil {
		return got, err
	}
	defer s.getModules(ctx, path, dir, work, ref)()
	began := time.Now()
	done := p.during(fmt.Sprintf("building it from the module %s@%s", ref.Component.module(), ref.Version), s.Estimate(ref), nil)
	tags, flags := programs[ref.Component].tags, linkerFlags(ref, commit)
	if s.Planted != "" && ref.Component == KubeAPIServerReference {
		tags, flags = "planted", flags+" -X github.com/skewproof/skewproof/proxy/apiserver.planted="+s.Planted
	}
	_, err = tool.run(ctx, append(programs[ref.Component].command(), "-trimpath", "-buildvcs=false", "-tags", tags,
		noDWARF, "-ldflags", flags, "-o", work.binary(), pkg)...)
	took := time.Since(began)
	done()
	if err != nil {
		return got, buildError(ref, err)
	}
	info, err := buildinfo.ReadFile(work.binary())
	if err != nil {
		return got, fmt.Errorf("read what was built: %w", err)
	}
	got.How = fmt.Sprintf("built from the module %s@%s with %s", ref.Component.module(), ref.Version, info.GoVersion)
	got.Seconds = took.Round(time.Millisecond).Seconds()
	return got, nil
}

// prepareBuild makes the module in which a binary is built, below a directory. It returns the go
// command for it, the package to build, and the commit of the source, which is empty if the module
// proxy does not say it.
func prepareBuild(ctx context.Context, path, dir string, ref Ref, p progress) (tool goCommand, pkg, commit string, err error) {
	tool = goCommand{path: path, dir: filepath.Join(dir, "src"), tmp: filepath.Join(dir, "gotmp")}
	if err := errors.Join(os.MkdirAll(tool.dir, 0o755), os.MkdirAll(tool.tmp, 0o755)); err != nil {
		return tool, "", "", err
	}
	mod, err := downloadModule(ctx, tool, ref, p)
	if err != nil {
		return tool, "", "", err
	}
	if mod.Origin != nil {
		commit = mod.Origin.Hash
	}
	if pkg, err = writeSource(tool.dir, ref, mod.GoMod); err == nil {
		err = requireStaging(ctx, tool, ref, pkg)
	}
	return tool, pkg, commit, err
}

// requireStaging downloads the modules with packages of the program. Of the staging modules among
// them the go.mod then requires the versions that replace them, because the required version is the
// one that paths in the binary name. Upstream's v0.0.0 would make go compile packages again that it
// has compiled for another program. A staging module that the program does not need may be missing:
// not every release publishes all.
func requireStaging(ctx context.Context, tool goCommand, ref Ref, pkg string) error {
	out, err := tool.run(ctx, programs[ref.Component].list(pkg)...)
	if err != nil {
		return nil // the build says what is wrong
	}
	path := filepath.Join(tool.dir, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	m, err := modfile.Parse(path, text, nil)
	if err != nil {
		return fmt.Errorf("read the go.mod to build %s in: %w", ref, err)
	}
	used, replaced := strings.Fields(string(out)), false
	for _, r := range m.Replace {
		if r.Old.Path == r.New.Path && r.New.Version == stagingVersion(ref.Version) && slices.Contains(used, r.Old.Path) {
			if err := m.AddRequire(r.New.Path, r.New.Version); err != nil {
				return err
			}
			replaced = true
		}
	}
	if !replaced {
		return nil
	}
	m.Cleanup()
	if text, err = m.Format(); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// command returns the arguments of the go command that builds the program. Further flags follow.
func (p program) command() []string {
	switch {
	case p.tests():
		return []string{"test", "-c", "-vet=off"}
	case p.library:
		return []string{"build", "-mod=readonly"} // its go.mod and go.sum are complete
	}
	return []string{"build"}
}

// downloadModule downloads and verifies the module. It does so in a temporary module, so that a
// go.mod above the cache has no effect.
func downloadModule(ctx context.Context, tool goCommand, ref Ref, p progress) (downloadedModule, error) {
	empty := fmt.Sprintf("module %s\n", ref.Component.buildModulePath())
	if err := os.WriteFile(filepath.Join(tool.dir, "go.mod"), []byte(empty), 0o644); err != nil {
		return downloadedModule{}, err
	}
	what := ref.Component.module() + "@" + string(ref.Version)
	done := p.during("getting the module "+what, 0, nil)
	out, err := tool.run(ctx, "mod", "download", "-json", what)
	done()
	var mod downloadedModule
	// With -json a failure is written to standard output, and go exits with 1.
	decodeErr := json.Unmarshal(out, &mod)
	switch {
	case decodeErr == nil && mod.Error != "":
		return mod, moduleError(what, mod.Error)
	case err != nil:
		return mod, fmt.Errorf("get the module %s: %w", what, err)
	case decodeErr != nil:
		return mod, fmt.Errorf("get the module %s: decode the answer of go: %w", what, decodeErr)
	}
	return mod, nil
}

func writeSource(src string, ref Ref, upstreamGoMod string) (pkg string, err error) {
	if err := writeFiles(src, ref); err != nil {
		return "", err
	}
	if programs[ref.Component].library {
		return ".", nil // its go.mod is one of the files
	}
	upstream, err := os.ReadFile(upstreamGoMod)
	if err != nil {
		return "", err
	}
	gomod, err := buildModule(ref, upstream)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(src, "go.mod"), gomod, 0o644); err != nil {
		return "", err
	}
	if below := programs[ref.Component].pkg; below != "" {
		return ref.Component.module() + "/" + below, nil
	}
	return ".", nil
}

// stagingPrefix is the prefix of paths in Kubernetes' go.mod to modules in its own tree. Every
// release also publishes these modules with their own tags (staging/README.md there), so they can
// be built.
const stagingPrefix = "./staging/src/"

// buildModule makes the go.mod of the temporary module in which a component is built, from the
// component's own go.mod. It copies the go and godebug lines. They set the defaults of GODEBUG, and
// go reads them only from the main module (go.dev/doc/godebug). Without them the build would
// differ.
//
// The replacement of a staging module fixes its version; see also requireStaging.
func buildModule(ref Ref, upstream []byte) ([]byte, error) {
	up, err := modfile.Parse(ref.Component.module()+"/go.mod", upstream, nil)
	if err != nil {
		return nil, fmt.Errorf("read the go.mod of %s: %w", ref, err)
	}
	m := new(modfile.File)
	var errs []error
	add := func(err error) { errs = append(errs, err) }

	add(m.AddModuleStmt(ref.Component.buildModulePath()))
	goVersion := ""
	if up.Go != nil {
		goVersion = up.Go.Version
	}
	for _, g := range up.Godebug {
		add(m.AddGodebug(g.Key, g.Value))
	}
	if programs[ref.Component].reference && semver.Compare("v"+goVersion, "v"+ownGo) < 0 {
		// The proxy's source needs a newer language, the server the defaults of its own.
		if len(up.Godebug) == 0 {
			add(m.AddGodebug("default", "go"+goLanguage(goVersion)))
		}
		goVersion = ownGo
	}
	if goVersion != "" {
		add(m.AddGoStmt(goVersion))
	}
	add(m.AddRequire(ref.Component.module(), string(ref.Version)))
	for _, r := range up.Replace {
		if path, ok := strings.CutPrefix(r.New.Path, stagingPrefix); ok {
			add(m.AddReplace(path, "", path, stagingVersion(ref.Version)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make a go.mod to build %s in: %w", ref, err)
	}
	m.Cleanup()
	return m.Format()
}

// ownGo is the version of Go's language in the source of the reference proxy.
const ownGo = "1.26.0"

// goLanguage returns the version of the language of a version of Go: 1.22 of 1.22.0.
func goLanguage(version string) string {
	return strings.TrimPrefix(semver.MajorMinor("v"+version), "v")
}

// stagingVersion returns the version of a release's staging modules, such as v0.37.1 for v1.37.1.
func stagingVersion(v Version) string { return "v0." + strings.TrimPrefix(string(v), "v1.") }

// fullCommit matches a git commit as the module proxy writes it.
var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// linkerFlags returns the flags that set the version of a binary. Without them a kube-apiserver
// knows only its minor version, and prints v0.0.0-master. The variables are from upstream's
// hack/lib/version.sh. An unknown commit ("") and the build date are left out, and /version has its
// defaults. etcd's version is in its source (api/version/version.go), so only the commit is set.
// The other variables are from containerd's Makefile and from the CNI plugins' build_linux.sh.
func linkerFlags(ref Ref, commit string) string {
	flags := []string{"-s", "-w"}
	set := func(name, value string) { flags = append(flags, "-X", name+"="+value) }
	known := fullCommit.MatchString(commit)
	switch programs[ref.Component].project {
	case etcd:
		if known {
			set("go.etcd.io/etcd/api/v3/version.GitSHA", commit[:9])
		}
	case containerd:
		set("github.com/containerd/containerd/v2/version.Version", string(ref.Version))
	case cniPlugins:
		set("github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion", string(ref.Version))
	case kubernetes, kubernetesFlags, kubernetesReference:
		major, minor := ref.Version.majorMinor()
		for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
			set(pkg+".gitVersion", string(ref.Version))
			set(pkg+".gitMajor", major)
			set(pkg+".gitMinor", minor)
			set(pkg+".gitTreeState", "clean")
			if known {
				set(pkg+".gitCommit", commit)
			}
		}
	}
	return strings.Join(flags, " ")
}
