package fieldskew

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// tree is an object, decoded from JSON.
type tree = map[string]any

// get returns the value at a place: names, and positions in lists.
func get(value any, place []string) (any, bool) {
	for _, step := range place {
		switch v := value.(type) {
		case tree:
			next, ok := v[step]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// nothing, put at a place, removes the value there.
type nothing struct{}

// put returns a copy of a value with another value at a place. Where the way to it is missing, or
// is something else, smallest says what to put there; nil means an empty object.
func put(value any, place []string, at int, to any, smallest func(place []string) any) any {
	if at == len(place) {
		return runtime.DeepCopyJSONValue(to)
	}
	step, removes := place[at], at == len(place)-1 && to == any(nothing{})
	if !isContainer(value) {
		if value = (tree{}); smallest != nil {
			value = smallest(place[:at])
		}
	}
	switch v := value.(type) {
	case tree:
		v = maps.Clone(v)
		if removes {
			delete(v, step)
		} else {
			v[step] = put(v[step], place, at+1, to, smallest)
		}
		return v
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i > len(v) { // a list of another shape than the schema says
			return value
		}
		v = slices.Clone(v)
		if removes {
			return slices.Delete(v, i, i+1)
		}
		if i == len(v) {
			v = append(v, nil)
		}
		v[i] = put(v[i], place, at+1, to, smallest)
		return v
	}
	return value
}

// remove returns a copy of a value without the value at a place.
func remove(value any, place []string) any {
	if _, ok := get(value, place); !ok {
		return value
	}
	return put(value, place, 0, nothing{}, nil)
}

func isContainer(value any) bool {
	switch value.(type) {
	case tree, []any:
		return true
	}
	return false
}

// merge returns an object with the fields of another one, which win.
func merge(into, from tree) tree {
	if into = maps.Clone(into); into == nil {
		into = tree{}
	}
	for name, value := range from {
		if value == nil { // it is left out
			delete(into, name)
			continue
		}
		old, wasTree := into[name].(tree)
		if of, ok := value.(tree); ok && wasTree {
			into[name] = merge(old, of)
			continue
		}
		into[name] = runtime.DeepCopyJSONValue(value)
	}
	return into
}

// between joins the steps of a place in a key; placeOf is the reverse.
const between = "\x00"

func key(place []string) string { return strings.Join(place, between) }

func placeOf(key string) []string { return strings.Split(key, between) }

// flatten lists the leaves of a value by the keys of their places. Empty objects and lists are
// leaves.
func flatten(value any, place []string, into map[string]string) {
	below := func(step string, of any) { flatten(of, append(slices.Clip(place), step), into) }
	switch v := value.(type) {
	case tree:
		for name, of := range v {
			below(name, of)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, of := range v {
			below(strconv.Itoa(i), of)
		}
		if len(v) > 0 {
			return
		}
	}
	into[key(place)] = string(encode(value))
}

func encode(value any) json.RawMessage {
	body, _ := json.Marshal(value) // it was decoded from JSON
	return body
}

// fieldPlace reads the place in a refusal, such as spec.containers[0].limits[cpu].
func fieldPlace(field string) (place []string) {
	for field != "" {
		if rest, ok := strings.CutPrefix(field, "["); ok {
			key, rest, _ := strings.Cut(rest, "]")
			place, field = append(place, strings.Trim(key, `"`)), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(field, ".[")
		if end < 0 {
			end = len(field)
		}
		place, field = append(place, field[:end]), strings.TrimPrefix(field[end:], ".")
	}
	return slices.DeleteFunc(place, func(s string) bool { return s == "" })
}

func under(place, above []string) bool {
	return len(place) >= len(above) && slices.Equal(place[:len(above)], above)
}

// smallest is a value that a schema allows: with the fields that it requires, and nothing else.
func (s *sweep) smallest(of schema, depth int) any {
	if value, ok := s.data.Values[of.name]; ok {
		return runtime.DeepCopyJSONValue(value)
	}
	shape := of.shape()
	if depth > 20 && (shape == object || shape == mapping || shape == list) {
		return of.zero()
	}
	switch shape {
	case object:
		o := tree{}
		for _, name := range of.Required {
			if field := s.both.property(of, name); field.known() {
				o[name] = s.smallest(field, depth+1)
			}
		}
		return o
	case mapping:
		item := s.both.item(of)
		return tree{s.step(item): s.smallest(item, depth+1)}
	case list:
		return []any{s.smallest(s.both.item(of), depth+1)}
	case truth:
		return true
	case number, text:
		return s.candidates(of)[0]
	}
	return tree{}
}

// odd are values that few fields allow. Enumerations have members instead.
func (s *sweep) odd(of schema, members []string) []any {
	switch shape := of.shape(); {
	case shape == number:
		return s.data.OddNumbers
	case shape == text && len(members) == 0 && !isEither(of.Schema):
		return s.data.OddTexts
	}
	return nil
}

// full is a value with every field of a schema.
func (s *sweep) full(of schema) any {
	value := s.smallest(of, 0)
	if all, ok := value.(tree); ok {
		for name := range of.Properties {
			all[name] = s.smallest(s.both.property(of, name), 0)
		}
	}
	return value
}

// step is a key in a map of items.
func (s *sweep) step(item schema) string { return cmp.Or(s.data.Keys[item.name], s.data.Keys[""]) }

// candidates are values for a text or a number, the most likely one first.
func (s *sweep) candidates(of schema) (all []any) {
	for _, member := range of.members() {
		all = append(all, member)
	}
	switch {
	case len(all) > 0:
		return all
	case of.shape() == truth:
		return []any{true, false}
	case of.shape() == number:
		return s.data.Numbers
	}
	return slices.Concat(s.data.Formats[of.Format], s.data.Texts)
}
