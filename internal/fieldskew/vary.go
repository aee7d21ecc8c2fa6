package fieldskew

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Restart starts the older (0) or the newer (1) server again, with feature gates in addition to its
// flags, and as the minor version that it emulates, if that is not empty. An error that wraps
// [ErrRefused] means that the server does not start like this.
type Restart func(ctx context.Context, side int, gates map[string]bool, emulated string) error

// ErrRefused is wrapped by errors about servers that do not start with some feature gates.
var ErrRefused = errors.New("the server does not start with these feature gates")

// Explain finds the feature gates with which differences vanish: of those that flips has, switched
// off at the newer server, or, if they are locked there, switched on at the older one. It also
// finds out which differences vanish if the newer server emulates the older minor version. Groups
// of gates are halved as long as differences vanish with them, so that there are few restarts.
func (f *Found) Explain(ctx context.Context, flips []gates.Flip, emulated string, restart Restart, status func(string, ...any)) error {
	f.Table.GatesTried = []string{}
	for _, flip := range flips {
		f.Table.GatesTried = append(f.Table.GatesTried, flip.Name)
	}
	all := make([]int, len(f.cases))
	for i := range f.cases {
		all[i] = i
	}
	for side := range 2 {
		group := slices.DeleteFunc(slices.Clone(flips), func(flip gates.Flip) bool { return flip.Locked != (side == 0) })
		if err := f.halve(ctx, side, group, all, restart, status); err != nil {
			return err
		}
		if err := restart(ctx, side, nil, ""); err != nil {
			return err
		}
	}
	if err := restart(ctx, 1, nil, emulated); err != nil {
		return err
	}
	gone, err := f.vanished(ctx, all)
	if err != nil {
		return err
	}
	for _, i := range gone {
		f.Table.Fields[i].Emulated = true
	}
	for i := range f.Table.Fields { // what vanishes with a dependent gate vanishes with the gate that it needs, too
		all := f.Table.Fields[i].Gates
		f.Table.Fields[i].Gates = slices.DeleteFunc(slices.Clone(all), func(g recorded.FieldGate) bool {
			return slices.ContainsFunc(all, func(of recorded.FieldGate) bool { return slices.Contains(g.With, of.Name) })
		})
	}
	return restart(ctx, 1, nil, "")
}

// halve switches a group of gates at one server, and searches in its halves for those with which
// cases vanish.
func (f *Found) halve(ctx context.Context, side int, group []gates.Flip, cases []int, restart Restart, status func(string, ...any)) error {
	if len(group) == 0 || len(cases) == 0 {
		return nil
	}
	switched, names := map[string]bool{}, []string{}
	for _, flip := range group {
		names = append(names, flip.Name)
		switched[flip.Name] = flip.On == (side == 0) // as the other release has it
		if side == 1 && flip.On {
			for _, d := range flip.Dependents {
				switched[d] = false
			}
		}
	}
	err := restart(ctx, side, switched, "")
	refused := errors.Is(err, ErrRefused)
	if err != nil && !refused {
		return fmt.Errorf("switch the feature gates %q: %w", names, err)
	}
	gone := cases
	if !refused {
		if gone, err = f.vanished(ctx, cases); err != nil {
			return err
		}
	}
	status("feature gates %q: %d of %d differences vanish", names, len(gone), len(cases))
	switch {
	case len(group) > 1:
		for _, half := range [][]gates.Flip{group[:len(group)/2], group[len(group)/2:]} {
			if err := f.halve(ctx, side, half, gone, restart, status); err != nil {
				return err
			}
		}
	case !refused:
		for _, i := range gone {
			f.Table.Fields[i].Gates = append(f.Table.Fields[i].Gates, recorded.FieldGate{Name: names[0], Locked: side == 0, With: group[0].Dependents})
		}
	}
	return nil
}

// vanished returns the cases of which the servers, as they run now, show no difference.
func (f *Found) vanished(ctx context.Context, cases []int) ([]int, error) {
	gone := make([]bool, len(f.cases))
	err := each(ctx, cases, func(ctx context.Context, i int) (err error) {
		c := f.cases[i]
		n, t := c.node, trial{object: c.object}
		n.found = nil
		if t.answers, err = f.sweep.send(ctx, n.Resource, t.object, true); err != nil {
			return err
		}
		if t.accepted() > 0 {
			err = f.sweep.judge(ctx, &n, &t, c.value)
		}
		if c.field.Older.Outcome != c.field.Newer.Outcome { // both may drop it, or warn, in their own words
			n.found = slices.DeleteFunc(n.found, func(of found) bool {
				outcome := of.field.Older.Outcome
				return outcome == of.field.Newer.Outcome && (outcome == recorded.FieldDropped || outcome == recorded.FieldWarned)
			})
		}
		gone[i] = len(n.found) == 0 && (t.accepted() > 0 || c.accepted == 1)
		return err
	})
	return slices.DeleteFunc(slices.Clone(cases), func(i int) bool { return !gone[i] }), err
}

// each does something with cases, some at a time.
func each(ctx context.Context, cases []int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, i := range cases {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// Update finds out which fields are kept when an object is read and written back through the older
// server. The objects are real: created at the newer server, and read there afterwards. It leaves
// out kinds whose objects would affect other requests.
func (f *Found) Update(ctx context.Context) error {
	var cases []int
	for i, c := range f.cases {
		if c.node.untried == "" && !c.field.Changed && !f.sweep.dryRunOnly(c.node.whole()) && !slices.Equal(c.place, itsName) { // objects have other names
			cases = append(cases, i)
		}
	}
	return each(ctx, cases, func(ctx context.Context, i int) (err error) {
		f.Table.Fields[i].Update, err = f.sweep.update(ctx, f.cases[i], fmt.Sprintf("skewproof-%d", i))
		return err
	})
}

// annotation makes an update a change even if the older server keeps everything else.
var annotation = []string{"metadata", "annotations", "skewproof"}

func (s *sweep) update(ctx context.Context, c found, name string) (recorded.FieldFate, error) {
	older, newer := s.sides[0].Server, s.sides[1].Server
	ask := func(server Server, method string, object any) (Answer, error) {
		return server.Send(ctx, Request{GVR: c.node.GVR, Method: method, Object: object, Name: name, Namespace: c.node.namespace()})
	}
	whole, object := c.node.whole(), c.object
	if c.node.Of != nil {
		object = c.node.parent
	}
	made, err := newer.Send(ctx, whole.request(put(object, itsName, 0, name, nil)))
	if err == nil && !made.OK() { // a name with a meaning
		own, _ := get(object, itsName)
		name, _ = own.(string)
		made, err = newer.Send(ctx, whole.request(object))
	}
	if revision, ok := get(made.Object, itsRevision); err == nil && ok && c.node.Of != nil {
		made, err = ask(newer, http.MethodPut, put(put(c.object, itsName, 0, name, nil), itsRevision, 0, revision, nil))
	}
	before, has := get(made.Object, c.place)
	sent, was := get(c.object, c.place)
	if err != nil || !made.OK() || !has || was && isEmpty(before) && !isEmpty(sent) {
		return "", err
	}
	read, err := ask(older, http.MethodGet, nil)
	if err != nil || !read.OK() {
		return "", err
	}
	written, err := ask(older, http.MethodPut, put(read.Object, annotation, 0, "written back", nil))
	if err != nil || !written.OK() {
		return recorded.FateRefused, err
	}
	again, err := ask(newer, http.MethodGet, nil)
	if err != nil || !again.OK() {
		return "", err
	}
	if after, _ := get(again.Object, c.place); reflect.DeepEqual(before, after) {
		return recorded.FateKept, nil
	}
	return recorded.FateLost, nil
}
