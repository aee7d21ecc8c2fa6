// Package fieldskew finds the fields that servers of two releases treat differently. It makes the
// smallest valid object of every kind that both serve, sets one path after the other of both
// OpenAPI documents, sends each object to a server of each release, and compares the answers.
//
// It knows no field. Where schemas do not say what a valid object is, it does what the refusals
// say, and data.json has the rest.
package fieldskew

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

//go:embed data.json
var dataFile []byte

// data is what schemas do not say.
type data struct {
	// Texts and Numbers are values of fields, the most likely ones first. Formats are more likely
	// ones for the formats of OpenAPI.
	Texts   []any            `json:"texts"`
	Numbers []any            `json:"numbers"`
	Formats map[string][]any `json:"formats"`
	// OddTexts and OddNumbers are what few fields allow, and about which releases change their minds:
	// names that begin with a digit, addresses with leading zeros, numbers out of the usual ranges.
	OddTexts   []any `json:"oddTexts"`
	OddNumbers []any `json:"oddNumbers"`
	// Keys are the keys of maps whose values have a definition; "" is for all other maps.
	Keys map[string]string `json:"keys"`
	// Values are valid values of definitions.
	Values map[string]any `json:"values"`
	// Metadata is the definition of the metadata of an object. An object inside another one that
	// has it is a template.
	Metadata string `json:"metadata"`
	// Skipped are fields beside metadata that are not a part of what users write. Answered are those
	// that they write only where they update an object through a subresource.
	Skipped  []string `json:"skipped"`
	Answered []string `json:"answered"`
	// Homes are the resources in which a definition is tried as a whole. All other kinds with this
	// definition are tried only at the paths that differed there, and at the paths in Own: every kind
	// has rules of its own for these.
	Homes map[string][]string `json:"homes"`
	Own   map[string][]string `json:"own"`
	// Objects are parts of the smallest object of a resource; for a subresource that updates, of the
	// object to which it belongs.
	Objects map[string]tree `json:"objects"`
	// Companions are values that another field needs, by definition and then by field.
	Companions map[string]map[string]tree `json:"companions"`
	// Prerequisites are objects that others need.
	Prerequisites []struct {
		Resource
		Object tree `json:"object"`
	} `json:"prerequisites"`
	// Existing are the objects in which the fields of a resource are changed. Without an entry it is
	// one object of the resource.
	Existing map[string][]stored `json:"existing"`
	// DryRunOnly are resources or groups whose objects would affect other requests.
	DryRunOnly []string `json:"dryRunOnly"`
	// Elsewhere are paths that only a subresource writes, by resource. They are tried there.
	Elsewhere map[string][]string `json:"elsewhere"`
}

// stored is an object that is stored.
type stored struct {
	Resource
	Object tree   `json:"object"` // part of it
	At     string `json:"at"`     // the field that has the fields of the resource that is tried
}

// Resource is a resource that a server serves, or a subresource.
type Resource struct {
	history.GVR // the resource of a subresource is such as "pods/status"
	// APIVersion and Kind are those of the objects. An empty APIVersion is that of the resource.
	APIVersion, Kind string
	Namespaced       bool
	// Of is the resource to which a subresource belongs; nil for others. Updates means that the
	// subresource updates an object. Without it, one is created.
	Of      *Resource
	Updates bool
}

func (r Resource) apiVersion() string {
	return cmp.Or(r.APIVersion, strings.TrimPrefix(r.Group+"/"+r.Version, "/"))
}

// whole is the resource itself, or that to which a subresource belongs.
func (r Resource) whole() Resource {
	if r.Of != nil {
		return *r.Of
	}
	return r
}

func (r Resource) namespace() string {
	if r.Namespaced {
		return "default"
	}
	return ""
}

// Side is one release.
type Side struct {
	Version string
	Server  Server
	Schemas Schemas
}

// Found are the differences between two releases.
type Found struct {
	Table recorded.FieldTable
	sweep *sweep
	cases []found // of the same length as Table.Fields
}

// found is an object that showed a difference. It can be sent again.
type found struct {
	node     node
	object   any
	place    []string
	accepted int // by how many servers
	value    string
	field    recorded.FieldSkew
}

// sweep is the search for differences between two releases.
type sweep struct {
	data  data
	sides [2]Side
	both  Schemas
	group *errgroup.Group
	slots chan struct{} // one for each object under way

	mu      sync.Mutex
	cases   []found
	counts  recorded.FieldCounts
	refused map[string]map[string]string
	untried map[string]map[string]string
	differs map[string]map[string]bool // by definition: the paths in it that differed in its home
}

// workers is how many objects are under way. Servers on two processors have no use for more.
const workers = 8

func newSweep(sides [2]Side) (*sweep, error) {
	s := &sweep{
		sides: sides, both: union(sides[0].Schemas, sides[1].Schemas), slots: make(chan struct{}, workers),
		refused: map[string]map[string]string{}, untried: map[string]map[string]string{}, differs: map[string]map[string]bool{},
	}
	if err := json.Unmarshal(dataFile, &s.data); err != nil {
		return nil, fmt.Errorf("read the data of the sweep: %w", err)
	}
	for definition, paths := range s.data.Own {
		for _, path := range paths {
			s.differed(definition, path)
		}
	}
	return s, nil
}

// Sweep compares two releases, the older one first, in all resources.
func Sweep(ctx context.Context, sides [2]Side, resources []Resource, status func(format string, args ...any)) (*Found, error) {
	s, err := newSweep(sides)
	if err != nil {
		return nil, err
	}
	for _, p := range s.data.Prerequisites {
		if _, err := s.send(ctx, p.Resource, p.Object, false); err != nil {
			return nil, err
		}
	}
	for _, homes := range []bool{true, false} { // others need what was found there
		group, ctx := errgroup.WithContext(ctx)
		s.group = group
		for _, r := range resources {
			if r.Of != nil && !s.both.kind(r).known() {
				continue // its requests have no body
			}
			if slices.Contains(slices.Concat(slices.Collect(maps.Values(s.data.Homes))...), r.String()) == homes {
				if r.Of == nil {
					s.counts.Kinds++
				} else {
					s.counts.Subresources++
				}
				group.Go(func() error { return s.kind(ctx, r) })
			}
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		out := s.counts.RefusedAlike + s.counts.NotTried
		status("%d paths are compared, %d are left out, %d differences so far", s.counts.Judged, out, len(s.cases))
	}
	slices.SortStableFunc(s.cases, func(a, b found) int { // servers list groups in another order each time
		return cmp.Or(cmp.Compare(a.field.GVR.String(), b.field.GVR.String()), cmp.Compare(a.field.Path, b.field.Path), slices.Compare(a.field.Values, b.field.Values))
	})
	f := &Found{sweep: s, Table: recorded.FieldTable{
		From: sides[0].Version, To: sides[1].Version, Counts: s.counts, Fields: []recorded.FieldSkew{},
		RefusedAlike: s.refused, NotTried: s.untried,
	}}
	for _, c := range s.cases {
		if s.ownDifference(&c.field) && !s.repeated(c) {
			f.cases, f.Table.Fields = append(f.cases, c), append(f.Table.Fields, c.field)
		}
	}
	return f, nil
}

// ownDifference reports whether a difference is more than that of other paths. It takes out what
// another path says already.
func (s *sweep) ownDifference(field *recorded.FieldSkew) bool {
	other := func(is func(of recorded.FieldSkew) bool) bool {
		return slices.ContainsFunc(s.cases, func(c found) bool { return c.field.GVR == field.GVR && is(c.field) })
	}
	for _, side := range field.Sides() {
		if side.Outcome == recorded.FieldWarned && other(func(of recorded.FieldSkew) bool { // of another field that both were sent
			return of.Path != field.Path && slices.ContainsFunc(of.Sides(), func(one *recorded.FieldSide) bool {
				return one.Outcome == recorded.FieldDropped && one.Says == side.Says
			})
		}) {
			return false
		}
	}
	for _, side := range field.Sides() {
		side.Elsewhere = slices.DeleteFunc(side.Elsewhere, func(path string) bool {
			return other(func(of recorded.FieldSkew) bool { return of.Path == path })
		})
		if side.Outcome == recorded.FieldDefaulted && side.Stored == nil && len(side.Elsewhere) == 0 {
			side.Outcome = recorded.FieldStored
		}
	}
	a, b := field.Older, field.Newer
	inOtherWords := a.Says != b.Says && a.Outcome == recorded.FieldWarned
	return a.Outcome != b.Outcome || a.Says != b.Says && !inOtherWords || string(a.Stored) != string(b.Stored) || len(a.Elsewhere)+len(b.Elsewhere) > 0
}

// Object makes the smallest object of a resource that has the field at a path, and that two servers
// accept, or one of them if the other accepts none. The path has the form of
// [recorded.FieldSkew]; an empty one is for the smallest object. Nothing is stored.
func Object(ctx context.Context, sides [2]Side, r Resource, path string) (made map[string]any, err error) {
	s, err := newSweep(sides)
	if err != nil {
		return nil, err
	}
	n := s.start(r)
	for _, place := range [][]string{nil, s.placeOf(n.root, path)} {
		if place != nil {
			of, _ := s.both.at(n.root, place)
			n.bases = []any{s.set(n.bases[0], n.root, place, s.smallest(of, 0))}
		}
		t, err := s.try(ctx, r, &attempt{object: n.bases[0], root: n.root, target: place, tried: map[string]int{}})
		if err != nil {
			return nil, err
		}
		if t.accepted() == 0 {
			return nil, fmt.Errorf("make an object of %s with %q: no server accepts it: %s", r.GVR, path, t.last)
		}
		n.bases = []any{t.object}
	}
	return n.bases[0].(tree), nil
}

// placeOf is the place of a path in an object: the first item of each list, and a key in each map.
func (s *sweep) placeOf(root schema, path string) (place []string) {
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[*]", ".[*]"), ".") {
		of, _ := s.both.at(root, place)
		switch {
		case step == "":
			continue
		case step == "[*]" && of.shape() == mapping:
			step = s.step(s.both.item(of))
		case step == "[*]":
			step = "0"
		}
		place = append(place, step)
	}
	return place
}
