package invariant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// dropping is the explanation of lost fields by the recorded table of two releases: the first one
// drops them when an object is created, and the second one stores them.
type dropping struct {
	drops, stores string   // versions; no version stores them if their feature gates are off in this run
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
		for _, older := range f.servers {
			if off := f.drops(older.line.at(at).version, is.version, gvr, paths); off != nil && !slices.ContainsFunc(off, f.switchedOn) {
				return dropping{drops: d.drops, fields: pathsOf(off)}, true
			}
		}
		fields := f.drops(d.drops, is.version, gvr, paths)
		if !is.up || fields == nil {
			continue
		}
		ok, d.stores, d.fields = true, is.version, pathsOf(fields)
		if f.drops(d.drops, is.behaves(), gvr, paths) != nil { // it does not emulate an older version
			d.beside = true
			return d, true
		}
	}
	return d, ok
}

// drops returns the fields of the table of two releases to which all these paths belong, and which
// the older release drops and the newer one stores. It returns nil if a path belongs to none.
func (f *Facts) drops(older, newer string, gvr history.GVR, paths []string) (fields []recorded.FieldSkew) {
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
		fields = append(fields, table.Fields[i])
	}
	return fields
}

func pathsOf(fields []recorded.FieldSkew) (paths []string) {
	for _, field := range fields {
		paths = append(paths, field.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// switchedOn reports whether the flags of the run leave a feature gate of a field on. With all of
// them off, the newer release drops the field, too.
func (f *Facts) switchedOn(field recorded.FieldSkew) bool {
	var set map[string]bool
	if f.run.Own != nil {
		set = gates.Read(f.run.Own.Joined(history.FeatureGates))
	}
	return len(field.Gates) == 0 || slices.ContainsFunc(field.Gates, func(g recorded.FieldGate) bool {
		on, given := set[g.Name]
		return on || !given
	})
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
	if d.stores == "" {
		return fmt.Sprintf("%s drops %s, whose feature gates are off", d.drops, strings.Join(d.fields, ", "))
	}
	return fmt.Sprintf("%s drops and %s stores %s", d.drops, d.stores, strings.Join(d.fields, ", "))
}
