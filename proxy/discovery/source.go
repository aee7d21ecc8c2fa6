// Package discovery reads and writes Kubernetes discovery documents: it decodes aggregated and legacy ones, merges those of several servers
// into one, filters them, and serves them in every format and encoding that clients ask for. Documents are immutable: no function changes
// its arguments, and callers must not change what they have passed or got.
package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Source is what one server serves at one root.
type Source struct {
	// Server is its identity. No two sources of a merge have the same.
	Server string
	// Version is what its /version says ("v1.37.1"). Text that is no version, "" included, is older than every version.
	Version string
	// Local is true for the server that merges. Only [MergeConsensus] uses it.
	Local bool
	// Groups is its document.
	Groups Groups
}

// newestFirst returns the sources in order of age: by version, the newest first, then by identity. The order is total, so every
// server finds the same one.
func newestFirst[T any](sources []T, identity func(*T) (server, version string)) []T {
	type aged struct {
		source  T
		server  string
		version *version.Version
	}
	all := make([]aged, len(sources))
	for i := range sources {
		server, text := identity(&sources[i])
		all[i] = aged{sources[i], server, semantic(text)}
	}
	slices.SortStableFunc(all, func(a, b aged) int {
		return cmp.Or(newer(a.version, b.version), strings.Compare(a.server, b.server))
	})
	ordered := make([]T, len(all))
	for i := range all {
		ordered[i] = all[i].source
	}
	return ordered
}

// newer is negative if a is newer than b. Nil is older than everything.
func newer(a, b *version.Version) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case b.LessThan(a):
		return -1
	case a.LessThan(b):
		return 1
	}
	return 0
}

// semantic reads a version, or returns nil. What has the digits of a version but not the form of a semantic one is cut to
// major.minor.patch: the library's comparison of the two forms is no order (1.2.3-rc < 1.2.3, and the plain 1.2.3.0 equals both).
func semantic(text string) *version.Version {
	if v, err := version.ParseSemantic(text); err == nil {
		return v
	}
	v, err := version.ParseGeneric(text)
	if err != nil {
		return nil
	}
	v, err = version.ParseSemantic(fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch()))
	if err != nil {
		return nil
	}
	return v
}
