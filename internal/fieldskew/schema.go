package fieldskew

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schemas are the definitions of all kinds of one release, by name.
type Schemas map[string]*spec.Schema

// union has the definitions of two releases: with the fields that either has, or requires, and the
// members of its enumerations. Everything else is that of the newer one, if it has the definition.
func union(older, newer Schemas) Schemas {
	all := Schemas{}
	maps.Copy(all, newer)
	for name, of := range older {
		all[name] = joined(of, newer[name])
	}
	return all
}

func joined(older, newer *spec.Schema) *spec.Schema {
	if older == nil || newer == nil || shapeOf(older) != shapeOf(newer) {
		return cmp.Or(newer, older)
	}
	all := *newer
	all.Required, all.Enum = slices.Concat(older.Required, newer.Required), slices.Concat(older.Enum, newer.Enum)
	// A field that both require must be here once: what is inside is built for each name.
	slices.Sort(all.Required)
	all.Required = slices.Compact(all.Required)
	all.Properties = maps.Clone(older.Properties)
	for name, of := range newer.Properties {
		if was, ok := older.Properties[name]; ok {
			of = *joined(&was, &of)
		}
		all.Properties[name] = of
	}
	if older.Items != nil && newer.Items != nil {
		all.Items = &spec.SchemaOrArray{Schema: joined(older.Items.Schema, newer.Items.Schema)}
	}
	if older.AdditionalProperties != nil && newer.AdditionalProperties != nil {
		all.AdditionalProperties = &spec.SchemaOrBool{Schema: joined(older.AdditionalProperties.Schema, newer.AdditionalProperties.Schema)}
	}
	return &all
}

// schema is the schema of one path.
type schema struct {
	name string // of the definition
	*spec.Schema
}

// unknown is the schema of what a release does not have.
var unknown = &spec.Schema{}

func (s schema) known() bool { return s.Schema != unknown }

const schemasAt = "#/components/schemas/"

// kind returns the schema of a kind.
func (s Schemas) kind(r Resource) schema {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		kinds, _ := s[name].Extensions["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // options of requests list many
			continue
		}
		is, _ := kinds[0].(map[string]any)
		if strings.TrimPrefix(fmt.Sprint(is["group"], "/", is["version"]), "/") == r.apiVersion() && is["kind"] == r.Kind {
			return s.resolve(&spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(schemasAt + name)}})
		}
	}
	return schema{"", unknown}
}

// resolve follows references. The name is that of the last definition on the way. A reference to
// nothing, or to itself, is unknown.
func (s Schemas) resolve(of *spec.Schema) (to schema) {
	for range 20 {
		switch {
		case of == nil:
			return schema{to.name, unknown}
		case of.Ref.String() != "":
			to.name = strings.TrimPrefix(of.Ref.String(), schemasAt)
			of = s[to.name]
		case len(of.AllOf) == 1 && len(of.Properties) == 0: // so Kubernetes adds a default to a reference
			of = &of.AllOf[0]
		default:
			return schema{to.name, of}
		}
	}
	return schema{to.name, unknown}
}

func (s Schemas) property(of schema, name string) schema {
	if p, ok := of.Properties[name]; ok {
		return s.resolve(&p)
	}
	return schema{"", unknown}
}

// item is the schema of the items of a list, or of the values of a map.
func (s Schemas) item(of schema) schema {
	switch {
	case of.Items != nil:
		return s.resolve(of.Items.Schema)
	case of.AdditionalProperties != nil:
		return s.resolve(of.AdditionalProperties.Schema)
	}
	return schema{"", unknown}
}

// at returns the schema of a place in an object, and its path for people.
func (s Schemas) at(of schema, place []string) (to schema, path string) {
	for _, step := range place {
		if shape := of.shape(); shape == list || shape == mapping {
			of, path = s.item(of), path+"[*]"
			continue
		}
		of, path = s.property(of, step), strings.TrimPrefix(path+"."+step, ".")
	}
	return of, path
}

// shape is what a value looks like in JSON.
type shape int

const (
	anything shape = iota // every value, and objects without known fields
	object
	mapping
	list
	text
	number
	truth
)

func (s schema) shape() shape { return shapeOf(s.Schema) }

func shapeOf(s *spec.Schema) shape {
	switch {
	case len(s.Properties) > 0:
		return object
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return mapping
	case s.Type.Contains("array"):
		return list
	case s.Type.Contains("string"):
		return text
	case s.Type.Contains("integer"), s.Type.Contains("number"):
		return number
	case s.Type.Contains("boolean"):
		return truth
	case len(s.OneOf) > 0 || isEither(s):
		return text // quantities, and integers or texts
	}
	return anything
}

// isEither reports whether a value is an integer or a text.
func isEither(s *spec.Schema) bool {
	is, _ := s.Extensions.GetBool("x-kubernetes-int-or-string")
	return is || s.Format == "int-or-string"
}

// members are the members of an enumeration.
func (s schema) members() (all []string) {
	for _, one := range s.Enum {
		if member, ok := one.(string); ok && member != "" {
			all = append(all, member)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// zero is the zero value of a schema.
func (s schema) zero() any {
	switch s.shape() {
	case list:
		return []any{}
	case text:
		switch {
		case isEither(s.Schema):
			return float64(0)
		case len(s.OneOf) > 0: // a quantity
			return "0"
		}
		return ""
	case number:
		return float64(0)
	case truth:
		return false
	}
	return tree{}
}
