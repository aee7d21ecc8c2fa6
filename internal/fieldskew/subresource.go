package fieldskew

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// skipped reports whether a field beside metadata is not a part of what users write.
func (s *sweep) skipped(r Resource, name string) bool {
	return slices.Contains(s.data.Skipped, name) || !r.Updates && slices.Contains(s.data.Answered, name)
}

// dryRunOnly reports whether objects of a resource would affect other requests.
func (s *sweep) dryRunOnly(r Resource) bool {
	return slices.ContainsFunc(s.data.DryRunOnly, func(of string) bool { return of == r.Group || of == r.String() })
}

// makeParent makes the object to which a subresource belongs. Then it sets the smallest object of
// the subresource: for a subresource that updates, what the older server has there.
func (s *sweep) makeParent(ctx context.Context, n *node) error {
	of, _ := s.start(*n.Of).bases[0].(tree)
	if n.Updates {
		of = merge(of, s.data.Objects[n.String()])
	}
	_, name, _ := strings.Cut(n.GVR.Resource, "/")
	t, name, err := s.store(ctx, *n.Of, of, "skewproof-"+name)
	if n.parent = t.object; err != nil {
		return err
	}
	if name == "" {
		if n.untried = "no object of " + n.Of.String() + ": " + t.last; t.object == nil {
			n.untried = "no object of " + n.Of.String() + " exists, and a new one would affect other requests"
		}
		return nil
	}
	if !n.Updates {
		n.bases[0] = put(n.bases[0], itsName, 0, name, nil)
		return nil
	}
	for _, gvr := range []history.GVR{n.Of.GVR, n.GVR} { // not every subresource can be read
		object, err := s.read(ctx, *n.Of, gvr, name)
		if err != nil {
			return err
		}
		if object != nil {
			n.bases[0] = object
		}
	}
	return nil
}

// store stores an object with the first server that accepts it, and returns its name. Where objects
// would affect other requests, or no server accepts this one, it is the first one that exists; ""
// if there is none.
func (s *sweep) store(ctx context.Context, r Resource, object any, name string) (t trial, is string, err error) {
	if !s.dryRunOnly(r) {
		if t, err = s.try(ctx, r, &attempt{object: object, root: s.both.kind(r), tried: map[string]int{}}); err != nil {
			return t, "", err
		}
		for _, side := range s.sides {
			made, err := side.Server.Send(ctx, r.request(put(t.object, itsName, 0, name, nil)))
			if err != nil || made.OK() {
				return t, name, err
			}
		}
	}
	all, err := s.sides[0].Server.Send(ctx, Request{GVR: r.GVR, Method: http.MethodGet, Namespace: r.namespace()})
	first, _ := get(all.Object, append([]string{"items", "0"}, itsName...))
	is, _ = first.(string)
	return t, is, err
}

// read reads an object of a resource, or a subresource of it, as the older server has it: nil if it
// answers none.
func (s *sweep) read(ctx context.Context, r Resource, as history.GVR, name string) (any, error) {
	a, err := s.sides[0].Server.Send(ctx, Request{GVR: as, Method: http.MethodGet, Namespace: r.namespace(), Name: name})
	if err != nil || !a.OK() {
		return nil, err
	}
	return remove(remove(a.Object, []string{"metadata", "managedFields"}), []string{"metadata", "uid"}), nil
}

// ignored reports whether a subresource does not write what is at a path, and so nothing below it:
// both servers answer without it, even with every field of it.
func (s *sweep) ignored(ctx context.Context, n *node) (bool, error) {
	t, err := s.try(ctx, n.Resource, &attempt{object: s.set(n.bases[0], n.root, n.place, s.full(n.of)), root: n.root, target: n.place, once: true})
	return t.accepted() == len(s.sides) && !slices.ContainsFunc(t.answers[:], func(a Answer) bool {
		_, has := get(a.Object, n.place)
		return has
	}), err
}

// answered tries, on create, what users write only where they update an object. It matters where
// one release writes it, and the other one does not.
func (s *sweep) answered(ctx context.Context, n node) error {
	if !n.of.known() || n.untried != "" {
		return nil
	}
	t, err := s.try(ctx, n.Resource, &attempt{object: s.set(n.bases[0], n.root, n.place, s.full(n.of)), root: n.root, target: n.place, tried: map[string]int{}})
	if err == nil && t.accepted() == len(s.sides) {
		if err = s.judge(ctx, &n, &t, recorded.FieldOne); err != nil {
			return err
		}
		n.found = slices.DeleteFunc(n.found, func(c found) bool {
			return (c.field.Older.Outcome == recorded.FieldDropped) == (c.field.Newer.Outcome == recorded.FieldDropped)
		})
		s.settle(&n, []string{recorded.FieldOne})
	}
	return err
}

// repeated reports whether a difference says nothing more: at a subresource, if the resource itself
// shows the same one; there, and where a template has what is tried elsewhere as a whole, if
// neither version writes the field.
func (s *sweep) repeated(c found) bool {
	is := c.field
	if is.Older.Outcome == recorded.FieldDropped && is.Newer.Outcome == recorded.FieldDropped {
		return c.node.Of != nil || is.Copied && c.node.home != ""
	}
	if c.node.Of == nil {
		return false
	}
	return slices.ContainsFunc(s.cases, func(of found) bool {
		f := of.field
		return f.GVR == c.node.Of.GVR && !f.Changed && f.Kind == is.Kind && f.Path == is.Path && f.Older.Outcome == is.Older.Outcome && f.Newer.Outcome == is.Newer.Outcome
	})
}
