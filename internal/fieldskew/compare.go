package fieldskew

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/sim/recorded"
)

// trial is an object and the answers of both servers to it.
type trial struct {
	object  any
	answers [2]Answer
	// supports are the values that a server offered instead of the one at the tested path.
	supports []string
	last     string // the last refusal
	folded   bool
}

// accepted is how many servers accepted the object. If one broke off, nothing is known.
func (t trial) accepted() (n int) {
	for _, a := range t.answers {
		switch {
		case a.Code == 0:
			return 0
		case a.OK():
			n++
		}
	}
	return n
}

// try sends an object, repairs it as the refusals say, and sends it again, until both servers
// accept it or there is nothing left to repair. It returns what the most servers accepted.
func (s *sweep) try(ctx context.Context, r Resource, a *attempt) (best trial, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return best, context.Cause(ctx)
	}
	var supports []string
	last := ""
	for round := range maxRepairs {
		t := trial{object: a.object}
		if t.answers, err = s.send(ctx, r, a.object, http.MethodPost, true); err != nil {
			return best, err
		}
		if round == 0 || t.accepted() > best.accepted() {
			best = t
		}
		changed := false
		for i := range slices.Backward(t.answers[:]) {
			if t.answers[i].OK() {
				continue
			}
			last = t.answers[i].Refusal.Message
			if details := t.answers[i].Refusal.Details; details != nil {
				for _, cause := range details.Causes {
					if cause.Type == metav1.CauseTypeFieldValueNotSupported && a.target != nil && slices.Equal(fieldPlace(cause.Field), a.target) {
						supports = append(supports, supported(cause.Message)...)
					}
				}
			}
			changed = changed || s.repair(a, t.answers[i].Refusal)
		}
		if best.accepted() == 2 || !changed {
			break
		}
	}
	slices.Sort(supports)
	best.last, best.supports = last, slices.Compact(supports)
	return best, nil
}

// send sends an object to both servers.
func (s *sweep) send(ctx context.Context, r Resource, object any, method string, dryRun bool) (answers [2]Answer, err error) {
	group, ctx := errgroup.WithContext(ctx)
	request := Request{GVR: r.GVR, Method: method, Object: object, DryRun: dryRun}
	if r.Namespaced {
		request.Namespace = namespace
	}
	for i, side := range s.sides {
		group.Go(func() (err error) {
			answers[i], err = side.Server.Send(ctx, request)
			return err
		})
	}
	return answers, group.Wait()
}

// maxRepeats is how often two different answers are compared with answers to the same object, to
// see what differs by chance: identities, times, addresses, names.
const maxRepeats = 3

// difference is what differs in two answers: places in the objects, and warnings.
func (s *sweep) difference(ctx context.Context, n *node, t trial) (different map[string]bool, err error) {
	different = map[string]bool{}
	leaves := func(answers [2]Answer) (of [2]map[string]string) {
		for i, a := range answers {
			of[i] = map[string]string{}
			if a.OK() {
				o := merge(a.Object, tree{})
				for _, name := range s.data.Skipped {
					delete(o, name)
				}
				if meta, ok := o["metadata"].(tree); ok {
					o["metadata"] = maps.Clone(meta)
					for _, name := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields"} {
						delete(o["metadata"].(tree), name)
					}
				}
				flatten(o, "", of[i])
			}
			for _, w := range a.Warnings {
				of[i][warning+w] = "true"
			}
		}
		return of
	}
	first := leaves(t.answers)
	for _, side := range first {
		for key := range side {
			different[key] = first[0][key] != first[1][key]
		}
	}
	maps.DeleteFunc(different, func(key string, differs bool) bool {
		place := placeOf(key)
		older, inOlder := get(t.answers[0].Object, place)
		newer, inNewer := get(t.answers[1].Object, place)
		_, sent := get(t.object, place)
		return !differs || n.inherited[key] && !(sent && under(place, n.place)) ||
			inOlder && inNewer && (isContainer(older) || isContainer(newer)) // what is in it differs
	})
	for i := 0; i < maxRepeats && len(different) > 0; i++ {
		answers, err := s.send(ctx, n.Resource, t.object, http.MethodPost, true)
		if err != nil {
			return nil, err
		}
		again := leaves(answers)
		maps.DeleteFunc(different, func(key string, _ bool) bool {
			return again[0][key] != first[0][key] || again[1][key] != first[1][key]
		})
	}
	return different, nil
}

func isContainer(value any) bool {
	switch value.(type) {
	case tree, []any:
		return true
	}
	return false
}

// warning begins the key of a warning among the places of an object.
const warning = "warning: "

// judge compares the answers to an object, and notes the differences.
func (s *sweep) judge(ctx context.Context, n *node, t *trial, value string, judged *bool) error {
	sent, _ := get(t.object, n.place)
	var sides [2]recorded.FieldSide
	for i, a := range t.answers {
		got, has := get(a.Object, n.place)
		side := recorded.FieldSide{Outcome: recorded.FieldStored, Unknown: n.of.side[i] == nil}
		switch {
		case !a.OK():
			side.Outcome, side.Says = recorded.FieldRefused, a.Refusal.Message
		case len(n.place) == 0:
		case !has:
			side.Outcome = recorded.FieldDropped
		case !contains(got, sent):
			side.Outcome, side.Stored = recorded.FieldDefaulted, encode(got)
		}
		if judged != nil && a.OK() && (value != recorded.FieldZero || has) {
			*judged = true
		}
		sides[i] = side
	}
	field := recorded.FieldSkew{
		GVR: n.GVR, Kind: n.Kind, Path: n.path, Values: []string{value}, Copied: n.copied, Older: sides[0], Newer: sides[1],
	}
	note := func(field recorded.FieldSkew, place []string) {
		n.found = append(n.found, found{node: *n, object: t.object, place: place, accepted: t.accepted(), value: value, field: field})
	}
	if t.accepted() < 2 {
		t.folded = value == recorded.FieldOne
		note(field, n.place)
		return nil
	}
	different, err := s.difference(ctx, n, *t)
	if err != nil {
		return err
	}
	outcomes := sides[0].Outcome != sides[1].Outcome || string(sides[0].Stored) != string(sides[1].Stored)
	differs := outcomes
	if outcomes && !slices.ContainsFunc(slices.Collect(maps.Keys(different)), func(key string) bool {
		return !strings.HasPrefix(key, warning) && under(placeOf(key), n.place)
	}) {
		outcomes, differs = false, false // it differs by chance, or with everything around it
	}
	for _, key := range slices.Sorted(maps.Keys(different)) {
		if text, ok := strings.CutPrefix(key, warning); ok {
			for i, side := range []*recorded.FieldSide{&field.Older, &field.Newer} {
				if slices.Contains(t.answers[i].Warnings, text) {
					if side.Says = text; side.Outcome == recorded.FieldStored {
						side.Outcome = recorded.FieldWarned
					}
					differs = true
				}
			}
			continue
		}
		place := placeOf(key)
		if outcomes && under(place, n.place) {
			continue
		}
		place = topmost(place, t.answers)
		if _, was := get(t.object, place); under(place, n.place) && !was {
			note(s.defaulted(n, place, value, t.answers), place)
			continue
		}
		_, path := n.root.at(s.schemas, place)
		for i, side := range []*recorded.FieldSide{&field.Older, &field.Newer} {
			if _, has := get(t.answers[i].Object, place); has && !slices.Contains(side.Elsewhere, path) {
				side.Elsewhere = append(side.Elsewhere, path)
				if side.Outcome == recorded.FieldStored {
					side.Outcome = recorded.FieldDefaulted
				}
				differs = true
			}
		}
	}
	if differs {
		note(field, n.place)
	}
	if value == recorded.FieldOne || value == recorded.FieldAbsent {
		t.folded = differs && (sides[0].Outcome == recorded.FieldDropped || sides[1].Outcome == recorded.FieldDropped)
		n.below = maps.Clone(n.inherited)
		maps.Copy(n.below, different)
	}
	return nil
}

// defaulted is the difference at a path that nobody set: one release gives it a value, or both give
// it their own.
func (s *sweep) defaulted(n *node, place []string, value string, answers [2]Answer) recorded.FieldSkew {
	of, path := n.root.at(s.schemas, place)
	field := recorded.FieldSkew{GVR: n.GVR, Kind: n.Kind, Path: path, Values: []string{recorded.FieldAbsent}, Copied: n.copied}
	if n.of.shape() == text && value != recorded.FieldOne && value != recorded.FieldZero {
		field.Values = append(field.Values, n.path+": "+value)
	}
	for i, side := range []*recorded.FieldSide{&field.Older, &field.Newer} {
		*side = recorded.FieldSide{Outcome: recorded.FieldStored, Unknown: of.side[i] == nil}
		if got, has := get(answers[i].Object, place); has {
			side.Outcome, side.Stored = recorded.FieldDefaulted, encode(got)
		}
	}
	return field
}

// topmost is the shortest beginning of a place that only one of two answers has.
func topmost(place []string, answers [2]Answer) []string {
	for i := 1; i < len(place); i++ {
		_, older := get(answers[0].Object, place[:i])
		_, newer := get(answers[1].Object, place[:i])
		if older != newer {
			return place[:i]
		}
	}
	return place
}

// settle joins the differences that were found at a path with several values, and notes them. tried
// are all values that a server accepted.
func (s *sweep) settle(n *node, tried []string) {
	var joined []found
	for _, c := range n.found {
		same := func(of found) bool {
			a, b := of.field, c.field
			alike := b.Older.Outcome == b.Newer.Outcome // such as a warning about a value that nobody stores
			return a.Path == b.Path && (alike || a.Older.Outcome == b.Older.Outcome && a.Newer.Outcome == b.Newer.Outcome)
		}
		if i := slices.IndexFunc(joined, same); i >= 0 {
			joined[i].field.Values = append(joined[i].field.Values, c.field.Values...)
		} else {
			joined = append(joined, c)
		}
	}
	dropped := slices.ContainsFunc(joined, func(c found) bool { // then an empty value says nothing more
		return c.field.Path == n.path && slices.Contains(c.field.Values, recorded.FieldOne) &&
			(c.field.Older.Outcome == recorded.FieldDropped || c.field.Newer.Outcome == recorded.FieldDropped)
	})
	joined = slices.DeleteFunc(joined, func(c found) bool {
		return dropped && c.field.Path == n.path && slices.Equal(c.field.Values, []string{recorded.FieldZero})
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range joined {
		slices.Sort(c.field.Values)
		if c.field.Values = slices.Compact(c.field.Values); c.field.Path == n.path && len(c.field.Values) == len(tried) {
			c.field.Values = nil
		}
		s.cases = append(s.cases, c)
	}
	stored := func(c found) bool {
		return c.field.Older.Outcome != recorded.FieldDropped || c.field.Newer.Outcome != recorded.FieldDropped
	}
	if slices.ContainsFunc(joined, stored) && n.home != "" { // for other kinds with the same definition
		if s.differs[n.home] == nil {
			s.differs[n.home] = map[string]bool{}
		}
		s.differs[n.home][n.path[n.at:]] = true
	}
}

// contains reports whether a value has everything of another one.
func contains(got, sent any) bool {
	switch want := sent.(type) {
	case tree:
		has, ok := got.(tree)
		if !ok {
			return false
		}
		for name, of := range want {
			if !contains(has[name], of) {
				return false
			}
		}
		return true
	case []any:
		has, ok := got.([]any)
		return ok && len(has) >= len(want) && !slices.ContainsFunc(want, func(of any) bool {
			return !slices.ContainsFunc(has, func(one any) bool { return contains(one, of) })
		})
	}
	return reflect.DeepEqual(got, sent)
}
