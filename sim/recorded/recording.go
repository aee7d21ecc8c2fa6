package recorded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
)

// defaultsFolder holds, beside the documents with every API on, those with the APIs that are on by
// default.
const defaultsFolder = "default"

// Roots are the names of both roots in their paths, and in the names of files.
var Roots = [2]string{proxy.RootCore: "api", proxy.RootGroups: "apis"}

// Recording is what a release serves with every API on, and by default.
type Recording struct {
	All, Default *Version
}

// ErrNotRecorded is wrapped by errors about releases that are not recorded.
var ErrNotRecorded = errors.New("it is not recorded what this release serves")

// Find returns the recording of a release: from the directories in their order, as [Write] leaves
// them, else from this repository. A directory that does not exist is no error.
func Find(name string, directories ...string) (Recording, error) {
	if !semver.IsValid(name) || semver.Build(name) != "" {
		return Recording{}, fmt.Errorf("version %q: want one like v1.37.1", name)
	}
	for _, dir := range directories {
		r, err := read(os.DirFS(dir), name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	if r, err := read(own{}, name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	return Recording{}, fmt.Errorf("%s: %w; recorded are %s", name, ErrNotRecorded, strings.Join(Names(), ", "))
}

func read(from fs.FS, name string) (r Recording, err error) {
	if r.All, err = readFolder(from, ".", name); err != nil {
		return Recording{}, err
	}
	r.Default, err = readFolder(from, defaultsFolder, name)
	return r, err
}

func readFolder(from fs.FS, folder, name string) (*Version, error) {
	var bodies [2][]byte
	for root, what := range Roots {
		body, err := fs.ReadFile(from, path.Join(folder, name+"-"+what+".json"))
		if err != nil {
			return nil, fmt.Errorf("read what release %s serves at /%s: %w", name, what, err)
		}
		bodies[root] = body
	}
	return whole(name, bodies)
}

// whole makes a version from recorded bodies. It leaves out the custom resource of a recording.
func whole(name string, bodies [2][]byte) (*Version, error) {
	for root, what := range Roots {
		body, err := cut(bodies[root], func(gvr history.GVR) bool { return gvr.Group != customGroup })
		if err != nil {
			return nil, fmt.Errorf("read what release %s serves at /%s: %w", name, what, err)
		}
		bodies[root] = body
	}
	v, err := parse(name, bodies)
	if err == nil && len(v.Document.Resources) == 0 {
		err = errors.New("it lists no resource")
	}
	if err != nil {
		return nil, fmt.Errorf("read what release %s serves: %w", name, err)
	}
	return v, nil
}

// Write leaves the bodies of both roots in a directory: with every API on, and by default. It
// refuses bodies that are no discovery documents.
func Write(dir, name string, all, defaults [2][]byte) error {
	for folder, bodies := range map[string][2][]byte{".": all, defaultsFolder: defaults} {
		if _, err := whole(name, bodies); err != nil {
			return err
		}
		for root, what := range Roots {
			if err := write(dir, folder, name+"-"+what, bodies[root]); err != nil {
				return err
			}
		}
	}
	return nil
}
