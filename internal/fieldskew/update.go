package fieldskew

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/skewproof/skewproof/sim/recorded"
)

// Update finds out which fields are kept when an object is read and written back through the older
// server. The objects are real: created at the newer server, and read there afterwards. It leaves
// out kinds whose objects would affect other requests.
func (f *Found) Update(ctx context.Context) error {
	workload, ctx := errgroup.WithContext(ctx)
	workload.SetLimit(workers)
	for i, c := range f.cases {
		dryRunOnly := func(of string) bool { return of == c.node.Group || of == c.node.String() }
		if c.node.untried == "" && !slices.ContainsFunc(f.sweep.data.DryRunOnly, dryRunOnly) {
			workload.Go(func() (err error) {
				f.Table.Fields[i].Update, err = f.sweep.update(ctx, c, fmt.Sprintf("skewproof-%d", i))
				return err
			})
		}
	}
	return workload.Wait()
}

// annotation makes an update a change even if the older server keeps everything else.
var annotation = []string{"metadata", "annotations", "skewproof"}

func (s *sweep) update(ctx context.Context, c found, name string) (recorded.FieldFate, error) {
	older, newer := s.sides[0].Server, s.sides[1].Server
	ask := func(server Server, method string, object any) (Answer, error) {
		r := Request{GVR: c.node.GVR, Method: method, Object: object, Name: name}
		if c.node.Namespaced {
			r.Namespace = namespace
		}
		if method == http.MethodPost {
			r.Name = ""
		}
		return server.Send(ctx, r)
	}
	made, err := ask(newer, http.MethodPost, put(c.object, []string{"metadata", "name"}, 0, name, nil))
	if err == nil && !made.OK() { // a name with a meaning
		own, _ := get(c.object, []string{"metadata", "name"})
		name, _ = own.(string)
		made, err = ask(newer, http.MethodPost, c.object)
	}
	before, has := get(made.Object, c.place)
	if err != nil || !made.OK() || !has {
		return "", err
	}
	read, err := ask(older, http.MethodGet, nil)
	if err != nil || !read.OK() {
		return "", err
	}
	written, err := ask(older, http.MethodPut, put(read.Object, annotation, 0, "written back", nil))
	if err != nil {
		return "", err
	}
	if !written.OK() {
		return recorded.FateRefused, nil
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
