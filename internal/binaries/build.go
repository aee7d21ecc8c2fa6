package binaries

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/mod/semver"
)

// firstEtcdModule is the first version whose server is a module of its own, and with its import path.
const firstEtcdModule = "v3.5.0"

// buildLock is held by whoever builds anything: two builds at once take as long as one after the other, and twice the
// memory.
const buildLock = "build"

// etcdMain is what etcd's own main.go is; that one is in a module that is not published under its import path.
const etcdMain = `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`

// downloadedModule is what is used of the answer of "go mod download -json".
type downloadedModule struct {
	GoMod  string // path of the cached go.mod
	Error  string
	Origin *struct{ Hash string } // not every module proxy tells it
}

// build stages a binary built from the modules in the Go module proxy. Whether they are what their authors published is
// for the checksum database to say, as the user's environment has it.
func (s *Store) build(ctx context.Context, ref Ref, work workspace, p progress) (how string, err error) {
	if ref.Component == Etcd && semver.Compare(string(ref.Version), firstEtcdModule) < 0 {
		return "", fmt.Errorf("etcd can be built from modules since %s only", firstEtcdModule)
	}
	path, err := exec.LookPath(s.goCommand())
	if err != nil {
		return "", fmt.Errorf("it takes the go command, which is not there: %w; install Go (https://go.dev/dl)", err)
	}
	dir, err := s.dir()
	if err != nil {
		return "", err
	}
	unlock, err := s.lock(ctx, dir, buildLock, p)
	if err != nil {
		return "", err
	}
	defer unlock()

	src := work.path("src")
	tool := goCommand{path: path, dir: src, tmp: work.path("gotmp")}
	if err := errors.Join(os.Mkdir(src, 0o755), os.Mkdir(tool.tmp, 0o755)); err != nil {
		return "", err
	}
	mod, err := downloadModule(ctx, tool, ref, p)
	if err != nil {
		return "", err
	}
	pkg, err := writeSource(src, ref, mod.GoMod)
	if err != nil {
		return "", err
	}
	commit := ""
	if mod.Origin != nil {
		commit = mod.Origin.Hash
	}
	done := p.during(fmt.Sprintf("building it from the module %s@%s (a first build takes several minutes)", ref.Component.module(), ref.Version), nil)
	_, err = tool.run(ctx, "build", "-trimpath", "-buildvcs=false", "-tags", programs[ref.Component].tags, "-ldflags", linkerFlags(ref, commit), "-o", work.binary(), pkg)
	done()
	if err != nil {
		return "", buildError(ref, err)
	}
	info, err := buildinfo.ReadFile(work.binary())
	if err != nil {
		return "", fmt.Errorf("read what was built: %w", err)
	}
	return fmt.Sprintf("built from the module %s@%s with %s", ref.Component.module(), ref.Version, info.GoVersion), nil
}

func (s *Store) goCommand() string {
	if s.Go == "" {
		return "go"
	}
	return s.Go
}

// downloadModule has the module downloaded and checked, in a module of its own: a go.mod in any parent of the cache
// must have no say.
func downloadModule(ctx context.Context, tool goCommand, ref Ref, p progress) (downloadedModule, error) {
	empty := fmt.Sprintf("module %s\n", ref.Component.buildModulePath())
	if err := os.WriteFile(filepath.Join(tool.dir, "go.mod"), []byte(empty), 0o644); err != nil {
		return downloadedModule{}, err
	}
	what := ref.Component.module() + "@" + string(ref.Version)
	done := p.during("getting the module "+what, nil)
	out, err := tool.run(ctx, "mod", "download", "-json", what)
	done()
	var mod downloadedModule
	// With -json a failure is told on standard output, and go exits with 1.
	decodeErr := json.Unmarshal(out, &mod)
	switch {
	case decodeErr == nil && mod.Error != "":
		return mod, moduleError(what, mod.Error)
	case err != nil:
		return mod, fmt.Errorf("get the module %s: %w", what, err)
	case decodeErr != nil:
		return mod, fmt.Errorf("get the module %s: read what go says of it: %w", what, decodeErr)
	}
	return mod, nil
}

// writeSource writes the temporary module, and returns the package of it to build.
func writeSource(src string, ref Ref, upstreamGoMod string) (pkg string, err error) {
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
	return ".", os.WriteFile(filepath.Join(src, "main.go"), []byte(etcdMain), 0o644)
}
