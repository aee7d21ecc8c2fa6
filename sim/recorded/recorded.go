// Package recorded holds the recorded discovery of real kube-apiserver releases: aggregated
// discovery with every API switched on (--runtime-config=api/all=true). It does not contain
// resources behind feature gates that are off by default in the release, nor custom resources.
// documents/README.md says how the documents were recorded.
package recorded

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

//go:embed documents/*.json documents/default/*.json documents/flags/*.json documents/behaviour/*.json documents/fields/*.json
var documents embed.FS

// equal are releases with another one whose files are equal to those that are not stored, byte for
// byte, but for the version in the recording of flags.
var equal = map[string]string{"v1.36.5": "v1.36.3", "v1.37.2": "v1.37.1", "v1.38.0-beta.0": "v1.37.1"}

// As returns the release whose files stand for those of a release that are not stored.
func As(name string) string { return cmp.Or(equal[name], name) }

// own is the recordings of this repository.
type own struct{}

// Open implements [fs.FS].
func (own) Open(name string) (fs.File, error) {
	file, err := documents.Open(path.Join("documents", name))
	for release, other := range equal {
		if other := strings.Replace(name, release, other, 1); err != nil && other != name {
			file, err = documents.Open(path.Join("documents", other))
		}
	}
	return file, err
}

// customGroup is the group of the custom resource that existed on the recorded servers. It does not
// belong to the releases.
const customGroup = "example.com"

// Version is the resources that one release serves itself, with every API switched on. All callers
// of Get share it, so nobody may change it. It is safe for concurrent use, and must not be copied.
type Version struct {
	Name string // "v1.37.1"
	// Roots are the groups of /api and /apis, in the order of the server. The index is
	// proxy.RootCore, proxy.RootGroups.
	Roots [2]discovery.Groups
	// Document is both roots in the form that invariants read and package traffic would discover:
	// /api before /apis, each in the order of the server. Bytes is the length of both Bodies
	// together. Hash is the SHA-256 of the first body followed by the second ("sha256:…"). For a
	// whole release, a real server without custom resources has the same Bytes and Hash, so that a
	// simulated history and a real one agree.
	Document history.Document
	// Bodies are both roots as the server sends them: aggregated v2, JSON, with a newline at the
	// end. The index is that of Roots.
	Bodies [2][]byte
	// GroupVersions are the group versions that the release has built in, each once, as GVRs without
	// a resource. Those of a version from [Version.Small] are the ones of the whole release.
	GroupVersions []history.GVR

	cuts cuts
}

// reading parses one release at its first call.
type reading = func() (*Version, error)

// releases returns all recorded releases, by name.
var releases = sync.OnceValue(func() map[string]reading {
	all := map[string]reading{}
	paths, err := fs.Glob(own{}, "*-apis.json")
	if err != nil { // the pattern is constant
		panic(err)
	}
	names := slices.Collect(maps.Keys(equal))
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(path, "-apis.json"))
	}
	for _, name := range names {
		all[name] = sync.OnceValues(func() (*Version, error) { return readFolder(own{}, ".", name) })
	}
	return all
})

// Names returns the names of all recorded releases, and of those in directories where [Write] left
// them, oldest first. A directory that cannot be read has none.
func Names(directories ...string) []string {
	names := slices.Collect(maps.Keys(releases()))
	for _, dir := range directories {
		paths, _ := fs.Glob(os.DirFS(dir), "*-apis.json") // the only error is a bad pattern
		for _, path := range paths {
			names = append(names, strings.TrimSuffix(path, "-apis.json"))
		}
	}
	slices.SortFunc(names, semver.Compare)
	return slices.Compact(names)
}

// Released returns the names of all recorded releases without pre-releases, whose modules nobody
// can build with published ones.
func Released() []string {
	return slices.DeleteFunc(Names(), func(v string) bool { return semver.Prerelease(v) != "" })
}

// Get returns a release by its full name, such as "v1.37.1". The error lists the recorded releases.
// A release is parsed at the first call, which takes a few milliseconds. Safe for concurrent use.
//
// A release with some of its APIs switched off ([release.Parse]) is derived once from the whole
// release.
func Get(name string) (*Version, error) {
	if release.Of(name) != name {
		return reduce(name)
	}
	read, ok := releases()[name]
	if !ok {
		return nil, fmt.Errorf("release %q: what it serves is not recorded; ask for one of %s, or record it: sim/recorded/documents/README.md says how",
			name, strings.Join(Names(), ", "))
	}
	return read()
}

// parse makes a version from the bodies of both roots.
func parse(name string, bodies [2][]byte) (*Version, error) {
	v := &Version{Name: name, Bodies: bodies}
	for root, body := range bodies {
		groups, err := discovery.Decode(discovery.AcceptV2, body)
		if err != nil {
			return nil, err
		}
		v.Roots[root] = groups
	}
	var err error
	if v.Document, err = answer.ParseRoots(bodies[proxy.RootCore], bodies[proxy.RootGroups]); err != nil {
		return nil, err
	}
	for _, r := range v.Document.Resources {
		if gv := (history.GVR{Group: r.Group, Version: r.Version}); !slices.Contains(v.GroupVersions, gv) {
			v.GroupVersions = append(v.GroupVersions, gv)
		}
	}
	return v, nil
}

// reduced caches a reading for each release with some of its APIs switched off, by name.
var reduced sync.Map

// reduce derives a release with some of its APIs switched off from the whole release.
func reduce(name string) (*Version, error) {
	r, err := release.Parse(name)
	if err != nil {
		return nil, err
	}
	whole, err := Get(r.Version)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Without {
		if !slices.ContainsFunc(whole.Document.Resources, func(o history.Resource) bool { return o.GVR.Group+"/"+o.GVR.Version == w }) {
			return nil, fmt.Errorf("release %s has no %s that could be switched off", r.Version, w)
		}
	}
	read, _ := reduced.LoadOrStore(name, sync.OnceValues(func() (*Version, error) {
		v, err := whole.only(name, func(gvr history.GVR) bool { return r.Serves(gvr.Group, gvr.Version) })
		if err != nil {
			return nil, fmt.Errorf("make release %s: %w", name, err)
		}
		return v, nil
	}))
	return read.(reading)()
}

// only returns a version that serves only the resources of v for which keep is true.
func (v *Version) only(name string, keep func(history.GVR) bool) (*Version, error) {
	var bodies [2][]byte
	for root, body := range v.Bodies {
		var err error
		if bodies[root], err = cut(body, keep); err != nil {
			return nil, err
		}
	}
	return parse(name, bodies)
}
