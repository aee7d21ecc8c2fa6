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

// repeated reports whether a difference at a subresource says nothing more: the resource itself
// shows the same one, or the subresource does not write the field and another entry is about it.
func (s *sweep) repeated(i int) bool {
	c := s.cases[i]
	drops := func(f recorded.FieldSkew) bool {
		return f.Older.Outcome == recorded.FieldDropped && f.Newer.Outcome == recorded.FieldDropped
	}
	for j, of := range s.cases {
		a, b := of.field, c.field
		switch alike := a.Older.Outcome == b.Older.Outcome && a.Newer.Outcome == b.Newer.Outcome; {
		case c.node.Of == nil || a.GVR == b.GVR || of.node.whole().GVR != c.node.whole().GVR || a.Kind != b.Kind || a.Path != b.Path:
		case alike && of.node.Of == nil, drops(b) && (!drops(a) || j < i):
			return true
		}
	}
	return false
}
