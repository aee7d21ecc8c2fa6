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

// makeParent makes the object to which a subresource belongs, with the first server that accepts
// it. Where objects would affect other requests, the first one that exists takes its place. Then it
// sets the smallest object of the subresource: for a subresource that updates, what the older
// server has there.
func (s *sweep) makeParent(ctx context.Context, n *node) error {
	of, _ := s.start(*n.Of).bases[0].(tree)
	if n.Updates {
		of = merge(of, s.data.Objects[n.String()])
	}
	_, name, _ := strings.Cut(n.GVR.Resource, "/")
	name = "skewproof-" + name
	n.untried = "no object of " + n.Of.String() + " exists, and a new one would affect other requests"
	read := Request{GVR: n.Of.GVR, Method: http.MethodGet, Namespace: n.namespace()}
	if !s.dryRunOnly(*n.Of) {
		t, err := s.try(ctx, *n.Of, &attempt{object: of, root: s.both.kind(*n.Of), tried: map[string]int{}})
		if err != nil {
			return err
		}
		n.parent, n.untried = t.object, "no object of "+n.Of.String()+": "+t.last
		for _, side := range s.sides {
			made, err := side.Server.Send(ctx, n.Of.request(put(t.object, itsName, 0, name, nil)))
			if err != nil {
				return err
			}
			if made.OK() {
				read.Name = name
				break
			}
		}
	}
	if read.Name == "" {
		all, err := s.sides[0].Server.Send(ctx, read)
		if err != nil {
			return err
		}
		first, _ := get(all.Object, append([]string{"items", "0"}, itsName...))
		if read.Name, _ = first.(string); read.Name == "" {
			return nil
		}
	}
	n.untried = ""
	if !n.Updates {
		n.bases[0] = put(n.bases[0], itsName, 0, read.Name, nil)
		return nil
	}
	for _, read.GVR = range []history.GVR{n.Of.GVR, n.GVR} { // not every subresource can be read
		answer, err := s.sides[0].Server.Send(ctx, read)
		if err != nil {
			return err
		}
		if answer.OK() {
			n.bases[0] = remove(remove(answer.Object, []string{"metadata", "managedFields"}), []string{"metadata", "uid"})
		}
	}
	return nil
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
		return f.GVR == c.node.Of.GVR && f.Kind == is.Kind && f.Path == is.Path && f.Older.Outcome == is.Older.Outcome && f.Newer.Outcome == is.Newer.Outcome
	})
}
