package fieldskew

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// tree is an object, decoded from JSON.
type tree = map[string]any

// clone copies a value in depth.
func clone(value any) any {
	switch v := value.(type) {
	case tree:
		c := make(tree, len(v))
		for name, of := range v {
			c[name] = clone(of)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, of := range v {
			c[i] = clone(of)
		}
		return c
	}
	return value
}

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

// put returns a copy of a value with another value at a place. Where the way to it is missing, or
// is something else, smallest says what to put there; nil means an empty object.
func put(value any, place []string, at int, to any, smallest func(place []string) any) any {
	if at == len(place) {
		return clone(to)
	}
	step := place[at]
	switch value.(type) {
	case tree, []any:
	default:
		if value = (tree{}); smallest != nil {
			value = smallest(place[:at])
		}
	}
	switch v := value.(type) {
	case tree:
		v = maps.Clone(v)
		v[step] = put(v[step], place, at+1, to, smallest)
		return v
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i > len(v) { // a list of another shape than the schema says
			return value
		}
		v = slices.Clone(v)
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
	if len(place) == 0 {
		return nil
	}
	above, _ := get(value, place[:len(place)-1])
	last := place[len(place)-1]
	switch v := above.(type) {
	case tree:
		v = maps.Clone(v)
		delete(v, last)
		above = v
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i >= 0 && i < len(v) {
			above = slices.Delete(slices.Clone(v), i, i+1)
		}
	default:
		return value
	}
	return put(value, place[:len(place)-1], 0, above, nil)
}

// flatten lists the leaves of a value by their places, joined as in a JSON pointer. Empty objects
// and lists are leaves.
func flatten(value any, place string, into map[string]string) {
	switch v := value.(type) {
	case tree:
		for name, of := range v {
			flatten(of, place+"/"+escape(name), into)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, of := range v {
			flatten(of, place+"/"+strconv.Itoa(i), into)
		}
		if len(v) > 0 {
			return
		}
	}
	into[place] = string(encode(value))
}

func encode(value any) json.RawMessage {
	body, _ := json.Marshal(value) // it was decoded from JSON
	return body
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
func unescape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
}

// pointer joins a place; placeOf is the reverse.
func pointer(place []string) string {
	var p strings.Builder
	for _, step := range place {
		p.WriteString("/" + escape(step))
	}
	return p.String()
}

func placeOf(pointer string) (place []string) {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		place = append(place, unescape(step))
	}
	return place
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
func (s *sweep) smallest(p pair, depth int) any {
	if value, ok := s.data.Values[p.name]; ok {
		return clone(value)
	}
	switch p.shape() {
	case object:
		o := tree{}
		if depth > 20 {
			return o
		}
		for _, name := range p.required() {
			if of := p.property(s.schemas, name); of.known() {
				o[name] = s.smallest(of, depth+1)
			}
		}
		return o
	case mapping:
		if depth > 20 {
			return tree{}
		}
		item := p.item(s.schemas)
		return tree{cmp.Or(s.data.Keys[item.name], s.data.Keys[""]): s.smallest(item, depth+1)}
	case list:
		if depth > 20 {
			return []any{}
		}
		return []any{s.smallest(p.item(s.schemas), depth+1)}
	case truth:
		return true
	case whole, decimal, text:
		return s.candidates(p)[0]
	}
	return tree{}
}

// candidates are values for a text or a number, the most likely one first.
func (s *sweep) candidates(p pair) (all []any) {
	for _, member := range p.members() {
		all = append(all, member)
	}
	if len(all) > 0 {
		return all
	}
	switch p.shape() {
	case truth:
		return []any{true, false}
	case whole, decimal:
		return s.data.Numbers
	}
	all = slices.Clone(s.data.Formats[p.either().Format])
	return append(all, s.data.Texts...)
}

// zero is the zero value of a schema.
func (p pair) zero() any {
	switch p.shape() {
	case list:
		return []any{}
	case text:
		switch s := p.either(); {
		case s.Format == "int-or-string" || isTrue(s, "x-kubernetes-int-or-string"):
			return float64(0)
		case len(s.OneOf) > 0: // a quantity
			return "0"
		}
		return ""
	case whole, decimal:
		return float64(0)
	case truth:
		return false
	}
	return tree{}
}
