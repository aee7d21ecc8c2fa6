package fieldskew

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/sim/recorded"
)

// existing is an object that is stored. Its resource is such that a request updates it.
type existing struct {
	Resource
	root   schema
	sides  [2]schema
	object tree
	at     []string // the field that has the fields of the resource that is tried
}

// makeExisting stores the objects in which the fields of a kind are changed.
func (s *sweep) makeExisting(ctx context.Context, n *node) error {
	all := s.data.Existing[n.String()]
	if all == nil {
		all = []stored{{Resource: n.Resource}}
	}
	for i, of := range all {
		own := s.start(of.Resource)
		first, _ := own.bases[0].(tree)
		_, name, err := s.store(ctx, of.Resource, merge(first, of.Object), fmt.Sprintf("skewproof-changed-%s-%d", n.GVR.Resource, i))
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		object, err := s.read(ctx, of.Resource, of.GVR, name)
		if err != nil {
			return err
		}
		e := existing{Resource: of.Resource, root: own.root, sides: own.sides}
		if e.object, _ = object.(tree); e.object == nil {
			continue
		}
		if e.Of, e.Updates = &of.Resource, true; of.At != "" {
			e.at = []string{of.At}
		}
		n.existing = append(n.existing, e)
	}
	return nil
}

// change changes a path in objects that exist, if both servers do the same with it in a new one.
// Templates with a definition in common are changed at its home only, and where the data says so.
func (s *sweep) change(ctx context.Context, n *node, one trial) error {
	elsewhere := n.home != "" && !slices.Contains(s.data.Homes[n.home], n.String())
	differs := slices.ContainsFunc(n.found, func(c found) bool { return c.value == recorded.FieldOne })
	if one.accepted() < len(s.sides) || differs || elsewhere || slices.Equal(n.place, itsName) {
		return nil
	}
	for i, e := range n.existing {
		c := *n
		c.Resource, c.root, c.sides, c.found, c.home = e.Resource, e.root, e.sides, nil, ""
		c.place, c.path = slices.Concat(e.at, n.place), strings.Join(append(slices.Clone(e.at), n.path), ".")
		fields, _ := one.object.(tree)
		fields = maps.Clone(fields)
		delete(fields, "apiVersion")
		delete(fields, "kind")
		if len(e.at) > 0 {
			delete(fields, "metadata")
			fields = tree{e.at[0]: fields}
		}
		name, _ := get(e.object, itsName)
		changed := put(merge(e.object, fields), itsName, 0, name, nil)
		was, _ := get(e.object, c.place)
		if is, _ := get(changed, c.place); reflect.DeepEqual(is, was) {
			var others []any
			if !isContainer(is) {
				others = slices.DeleteFunc(slices.Clone(s.candidates(n.of)), func(v any) bool { return reflect.DeepEqual(v, was) })
			}
			if len(others) == 0 {
				continue
			}
			changed = s.set(changed, c.root, c.place, others[0])
		}
		if i == 0 {
			s.mu.Lock()
			s.counts.Changed++
			s.mu.Unlock()
		}
		t, err := s.try(ctx, c.Resource, &attempt{object: changed, root: c.root, target: c.place, once: true})
		if err != nil {
			return err
		}
		if t.accepted() == 1 {
			if err := s.judge(ctx, &c, &t, recorded.FieldOne); err != nil {
				return err
			}
			for i := range c.found {
				c.found[i].field.Changed = true
			}
			s.settle(&c, []string{recorded.FieldOne})
			n.existing = nil // otherwise what is below it says the same
			return nil
		}
	}
	return nil
}
