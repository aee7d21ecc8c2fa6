package fieldskew

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
// off at the newer server, or, if they are locked there, switched on at the older one. It also finds
// out which differences vanish if the newer server emulates the older minor version. Groups of
// gates are halved as long as differences vanish with them, so that there are few restarts.
func (f *Found) Explain(ctx context.Context, flips []gates.Flip, emulated string, restart Restart, status func(string, ...any)) error {
	var open, locked []gates.Flip
	f.Table.GatesTried = []string{}
	for _, flip := range flips {
		f.Table.GatesTried = append(f.Table.GatesTried, flip.Name)
		if flip.Locked {
			locked = append(locked, flip)
		} else {
			open = append(open, flip)
		}
	}
	all := make([]int, len(f.cases))
	for i := range f.cases {
		all[i] = i
	}
	for side, of := range [2][]gates.Flip{1: open, 0: locked} {
		if err := f.halve(ctx, side, of, all, restart, status); err != nil {
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
	if len(group) > 1 {
		for _, half := range [][]gates.Flip{group[:len(group)/2], group[len(group)/2:]} {
			if err := f.halve(ctx, side, half, gone, restart, status); err != nil {
				return err
			}
		}
		return nil
	}
	for _, i := range gone {
		if !refused {
			f.Table.Fields[i].Gates = append(f.Table.Fields[i].Gates, recorded.FieldGate{Name: names[0], Locked: side == 0, With: group[0].Dependents})
		}
	}
	return nil
}

// vanished returns the cases of which the servers, as they run now, show no difference.
func (f *Found) vanished(ctx context.Context, cases []int) ([]int, error) {
	gone := make([]bool, len(f.cases))
	workload, ctx := errgroup.WithContext(ctx)
	workload.SetLimit(workers)
	for _, i := range cases {
		workload.Go(func() error {
			c := f.cases[i]
			n := c.node
			n.found = nil
			t := trial{object: c.object}
			var err error
			if t.answers, err = f.sweep.send(ctx, n.Resource, t.object, http.MethodPost, true); err != nil {
				return err
			}
			if t.accepted() > 0 {
				err = f.sweep.judge(ctx, &n, &t, c.value, nil)
			}
			gone[i] = len(n.found) == 0 && (t.accepted() > 0 || c.accepted == 1)
			return err
		})
	}
	if err := workload.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(cases), func(i int) bool { return !gone[i] }), nil
}
