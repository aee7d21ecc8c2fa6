// Package release reads the version of a server in a run: a release, and which of its APIs are off.
//
// Upstream itself tests the proxy of 1.28 to 1.32 with two servers of one release that serve
// different APIs: these releases cannot be mixed with later ones.
package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// without begins the build metadata that names the APIs that are switched off.
const without = "+without."

// Release is a version with some of its APIs switched off.
type Release struct {
	// Version is the release itself, "v1.30.14".
	Version string
	// Without are the group versions that are switched off, such as "batch/v1"; sorted.
	Without []string
}

// Parse reads "v1.30.14", or "v1.30.14+without.batch.v1" for a server with batch/v1 switched off;
// several are joined by ".and.". The list is build metadata of semantic versioning, so that both
// compare as the same release. Parse does not check that the release exists.
func Parse(s string) (Release, error) {
	version, list, cut := strings.Cut(s, without)
	if !cut {
		return Release{Version: s}, nil
	}
	r := Release{Version: version}
	fail := func(err error) (Release, error) {
		return Release{}, fmt.Errorf("version %q: %w; write it like v1.30.14+without.batch.v1", s, err)
	}
	if !semver.IsValid(s) {
		return fail(errors.New("it is no semantic version"))
	}
	for word := range strings.SplitSeq(list, ".and.") {
		at := strings.LastIndexByte(word, '.')
		if at <= 0 || at == len(word)-1 {
			return fail(fmt.Errorf("%q names no group and version", word))
		}
		r.Without = append(r.Without, word[:at]+"/"+word[at+1:])
	}
	slices.Sort(r.Without)
	return r, nil
}

// String is the reverse of Parse.
func (r Release) String() string {
	if len(r.Without) == 0 {
		return r.Version
	}
	return r.Version + without + strings.ReplaceAll(strings.Join(r.Without, ".and."), "/", ".")
}

// Of returns the release of a server, without the list of APIs that are switched off.
func Of(s string) string {
	version, _, _ := strings.Cut(s, without)
	return version
}

// RuntimeConfig is the value of --runtime-config that switches the group versions off, if any.
func (r Release) RuntimeConfig() string {
	var words []string
	for _, w := range r.Without {
		words = append(words, w+"=false")
	}
	return strings.Join(words, ",")
}

// Serves reports whether a group version is not switched off.
func (r Release) Serves(group, version string) bool {
	return !slices.Contains(r.Without, group+"/"+version)
}
