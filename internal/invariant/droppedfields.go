package invariant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// dropping is the explanation of lost fields by the recorded table of two releases: the first one
// drops them when an object is created, and the second one stores them.
type dropping struct {
	drops, stores string   // versions
	fields        []string // their paths in the table
	// beside is true if a server that was up behaved like a version that stores the fields.
	beside bool
}

// pairOf identifies the table of two releases.
type pairOf struct{ older, newer string }

// dropped returns the explanation why a server drops all these fields of a kind. ok is false if
// the recorded tables do not explain them.
func (f *Facts) dropped(by *server, at history.Time, gvr history.GVR, paths []string) (d dropping, ok bool) {
	d.drops = by.line.at(at).behaves()
	for _, other := range f.servers {
		is := other.line.at(at)
		fields := f.drops(d.drops, is.version, gvr, paths)
		if !is.up || fields == nil {
			continue
		}
		ok, d.stores, d.fields = true, is.version, fields
		if f.drops(d.drops, is.behaves(), gvr, paths) != nil { // it does not emulate an older version
			d.beside = true
			return d, true
		}
	}
	return d, ok
}

// drops returns the fields of the table of two releases to which all these paths belong, and which
// the older release drops and the newer one stores. It returns nil if a path belongs to none.
func (f *Facts) drops(older, newer string, gvr history.GVR, paths []string) (fields []string) {
	if !semver.IsValid(older) || !semver.IsValid(newer) || semver.Compare(semver.MajorMinor(older), semver.MajorMinor(newer)) >= 0 {
		return nil
	}
	pair := pairOf{older, newer}
	table, known := f.fieldTables[pair]
	if !known {
		table, _ = recorded.Fields(older, newer) // without a table there is no explanation
		f.fieldTables[pair] = table
	}
	for _, path := range paths {
		i := slices.IndexFunc(table.Fields, func(field recorded.FieldSkew) bool {
			return field.GVR == gvr && field.OnlyNewerStores() && leadsInto(path, field.Path)
		})
		if i < 0 {
			return nil
		}
		fields = append(fields, table.Fields[i].Path)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

var positions = regexp.MustCompile(`\[\d+\]`)

// leadsInto reports whether a path, in the form of history.Object.Fields, is that of a recorded
// field or leads into it.
func leadsInto(path, field string) bool {
	rest, ok := strings.CutPrefix(positions.ReplaceAllString(path, "[*]"), field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// String says for people which versions drop and store which fields.
func (d dropping) String() string {
	return fmt.Sprintf("%s drops and %s stores %s", d.drops, d.stores, strings.Join(d.fields, ", "))
}
