package fieldskew

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/sim/recorded"
)

// maxRepeats is how often two different answers are compared with answers to the same object, to
// see what differs by chance: identities, times, addresses, names.
const maxRepeats = 3

// leaves are what an answer has: the leaves of the object by their places, and warnings.
func (s *sweep) leaves(n *node, a Answer) map[string]string {
	all := map[string]string{}
	if a.OK() {
		o := maps.Clone(a.Object)
		maps.DeleteFunc(o, func(name string, _ any) bool { return slices.Contains(s.data.Skipped, name) })
		for _, name := range s.data.Answered { // lists beside what is tried have no order
			if of, ok := o[name].(tree); ok && !n.Updates && !under(n.place, []string{name}) {
				of = maps.Clone(of)
				maps.DeleteFunc(of, func(_ string, value any) bool { return isContainer(value) })
				o[name] = of
			}
		}
		if meta, ok := o["metadata"].(tree); ok {
			meta = maps.Clone(meta)
			o["metadata"] = meta
			for _, name := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields"} {
				delete(meta, name)
			}
		}
		flatten(o, nil, all)
	}
	for _, w := range a.Warnings {
		all[warning+w] = "true"
	}
	return all
}

// difference is what differs in two answers: places in the objects, and warnings.
func (s *sweep) difference(ctx context.Context, n *node, t trial) (different map[string]bool, err error) {
	different = map[string]bool{}
	first := [2]map[string]string{s.leaves(n, t.answers[0]), s.leaves(n, t.answers[1])}
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
		answers, err := s.send(ctx, n.Resource, t.object, true)
		if err != nil {
			return nil, err
		}
		for side, answer := range answers {
			again := s.leaves(n, answer)
			maps.DeleteFunc(different, func(key string, _ bool) bool { return again[key] != first[side][key] })
		}
	}
	return different, nil
}

// warning begins the key of a warning among the places of an object.
const warning = "warning: "

// judge compares the answers to an object, and notes the differences.
func (s *sweep) judge(ctx context.Context, n *node, t *trial, value string) error {
	sent, _ := get(t.object, n.place)
	field := recorded.FieldSkew{GVR: n.GVR, Kind: n.Kind, Path: n.path, Values: []string{value}, Copied: n.copied}
	sides := field.Sides()
	for i, a := range t.answers {
		got, has := get(a.Object, n.place)
		*sides[i] = recorded.FieldSide{Outcome: recorded.FieldStored, Unknown: !s.knows(n, i, n.place)}
		switch {
		case !a.OK():
			sides[i].Outcome, sides[i].Says = recorded.FieldRefused, brief(a.Refusal.Message)
		case len(n.place) == 0:
		case !has || isEmpty(got) && !isEmpty(sent):
			sides[i].Outcome, sides[i].Owned = recorded.FieldDropped, owned(a.Object, n.place)
		case !contains(got, sent):
			sides[i].Outcome, sides[i].Stored = recorded.FieldDefaulted, encode(got)
		}
		n.judged = n.judged || a.OK() && (value != recorded.FieldZero || has)
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
	drops := sides[0].Outcome == recorded.FieldDropped || sides[1].Outcome == recorded.FieldDropped
	keys := slices.Sorted(maps.Keys(different))
	// otherwise it differs by chance, or with everything around it
	outcomes := (sides[0].Outcome != sides[1].Outcome || string(sides[0].Stored) != string(sides[1].Stored)) &&
		slices.ContainsFunc(keys, func(key string) bool { return !strings.HasPrefix(key, warning) && under(placeOf(key), n.place) })
	differs := outcomes
	for _, key := range keys {
		if text, ok := strings.CutPrefix(key, warning); ok {
			for i, side := range sides {
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
		_, path := s.both.at(n.root, place)
		for i, side := range sides {
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
		t.folded = differs && drops
		n.below = maps.Clone(n.inherited)
		maps.Copy(n.below, different)
	}
	return nil
}

// brief is the beginning and the end of a refusal: in between, some have the whole object.
func brief(says string) string {
	const begins, ends = 100, 320
	if all := []rune(says); len(all) > begins+ends {
		return string(all[:begins]) + " … " + string(all[len(all)-ends:])
	}
	return says
}

// owned reports whether an answer names an owner of the field at a place. The items of a list have
// keys there and no positions, so every item counts.
func owned(answer tree, place []string) bool {
	all, _ := get(answer, []string{"metadata", "managedFields"})
	managers, _ := all.([]any)
	return slices.ContainsFunc(managers, func(manager any) bool {
		at, ok := get(manager, []string{"fieldsV1"})
		for _, step := range place {
			fields, _ := at.(tree)
			if at, ok = fields["f:"+step]; ok {
				continue
			}
			for key, of := range fields {
				if strings.HasPrefix(key, "k:") || strings.HasPrefix(key, "v:") {
					at, ok = of, true
				}
			}
			if !ok {
				return false
			}
		}
		return ok
	})
}

// knows reports whether the OpenAPI document of a release has a place.
func (s *sweep) knows(n *node, side int, place []string) bool {
	of, _ := s.sides[side].Schemas.at(n.sides[side], place)
	return of.known()
}

// defaulted is the difference at a path that nobody set: one release gives it a value, or both give
// it their own.
func (s *sweep) defaulted(n *node, place []string, value string, answers [2]Answer) recorded.FieldSkew {
	_, path := s.both.at(n.root, place)
	field := recorded.FieldSkew{GVR: n.GVR, Kind: n.Kind, Path: path, Values: []string{recorded.FieldAbsent}, Copied: n.copied}
	if n.of.shape() == text && value != recorded.FieldOne && value != recorded.FieldZero {
		field.Values = append(field.Values, n.path+": "+value)
	}
	for i, side := range field.Sides() {
		*side = recorded.FieldSide{Outcome: recorded.FieldStored, Unknown: !s.knows(n, i, place)}
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
		alike := c.field.Older.Outcome == c.field.Newer.Outcome // such as a warning about a value that nobody stores
		if i := slices.IndexFunc(joined, func(of found) bool {
			a, b := of.field, c.field
			return a.Path == b.Path && (alike || a.Older.Outcome == b.Older.Outcome && a.Newer.Outcome == b.Newer.Outcome)
		}); i >= 0 {
			joined[i].field.Values = append(joined[i].field.Values, c.field.Values...)
		} else {
			joined = append(joined, c)
		}
	}
	drops := func(c found) bool {
		return c.field.Older.Outcome == recorded.FieldDropped || c.field.Newer.Outcome == recorded.FieldDropped
	}
	if slices.ContainsFunc(joined, func(c found) bool {
		return c.field.Path == n.path && slices.Contains(c.field.Values, recorded.FieldOne) && drops(c)
	}) { // then an empty value says nothing more
		joined = slices.DeleteFunc(joined, func(c found) bool {
			return c.field.Path == n.path && slices.Equal(c.field.Values, []string{recorded.FieldZero})
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range joined {
		for _, side := range c.field.Sides() {
			if c.accepted < len(s.sides) && side.Outcome == recorded.FieldDropped && slices.Equal(c.field.Values, []string{recorded.FieldZero}) {
				side.Outcome = recorded.FieldStored // answers leave empty values out
			}
		}
		slices.Sort(c.field.Values)
		if c.field.Values = slices.Compact(c.field.Values); c.field.Path == n.path && len(c.field.Values) == len(tried) {
			c.field.Values = nil
		}
		s.cases = append(s.cases, c)
		if n.home != "" && n.Of == nil && (c.field.Older.Outcome != recorded.FieldDropped || c.field.Newer.Outcome != recorded.FieldDropped) {
			s.differed(n.home, n.path[n.at:])
		}
	}
}

// isEmpty reports whether a value is an object or a list with nothing in it.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case tree:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
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
