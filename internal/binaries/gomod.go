package binaries

import (
	"fmt"
	"strings"

	"golang.org/x/mod/modfile"
)

// stagingPrefix is how Kubernetes' go.mod points at the modules that it publishes from its own tree. They are published
// with a tag of their own for every release (staging/README.md there), which is what makes a build from modules possible.
const stagingPrefix = "./staging/src/"

// buildModule makes the go.mod of the temporary module that a component is built in, from the component's own go.mod. The go
// and godebug lines are copied, because they decide the defaults of GODEBUG and are read from the main module only
// (go.dev/doc/godebug); a build without them would behave unlike the release.
func buildModule(ref Ref, upstream []byte) ([]byte, error) {
	up, err := modfile.Parse(ref.Component.module()+"/go.mod", upstream, nil)
	if err != nil {
		return nil, fmt.Errorf("read the go.mod of %s: %w", ref, err)
	}
	m := new(modfile.File)
	var errs []error
	add := func(err error) { errs = append(errs, err) }

	add(m.AddModuleStmt(ref.Component.buildModulePath()))
	if up.Go != nil {
		add(m.AddGoStmt(up.Go.Version))
	}
	for _, g := range up.Godebug {
		add(m.AddGodebug(g.Key, g.Value))
	}
	add(m.AddRequire(ref.Component.module(), string(ref.Version)))
	for _, r := range up.Replace {
		path, ok := strings.CutPrefix(r.New.Path, stagingPrefix)
		if !ok {
			continue
		}
		add(m.AddReplace(path, "", path, stagingVersion(ref.Version)))
	}
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("make a go.mod to build %s in: %w", ref, err)
		}
	}
	m.Cleanup()
	return m.Format()
}

// stagingVersion is the version with which the staging modules of a Kubernetes release are published: v0.37.1 for v1.37.1.
func stagingVersion(v Version) string { return "v0." + strings.TrimPrefix(string(v), "v1.") }
