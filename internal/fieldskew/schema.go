package fieldskew

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/skewproof/skewproof/internal/history"
)

// Schemas are the definitions of all kinds of one release, by name.
type Schemas map[string]*spec.Schema

// Add reads the OpenAPI v3 document of a group version.
func (s Schemas) Add(document []byte) error {
	var d struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return fmt.Errorf("read an OpenAPI document: %w", err)
	}
	maps.Copy(s, d.Components.Schemas)
	return nil
}

// kind returns the definition of a kind, or nil.
func (s Schemas) kind(gvr history.GVR, kind string) *spec.Schema {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		kinds, _ := s[name].Extensions["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // options of requests list many
			continue
		}
		if is, _ := kinds[0].(map[string]any); is["group"] == gvr.Group && is["version"] == gvr.Version && is["kind"] == kind {
			return &spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(schemasAt + name)}}
		}
	}
	return nil
}

const schemasAt = "#/components/schemas/"

// resolve follows references. name is that of the last definition on the way. A reference to
// nothing, or to itself, resolves to nil.
func (s Schemas) resolve(of *spec.Schema) (name string, to *spec.Schema) {
	for range 20 {
		switch {
		case of == nil:
			return name, nil
		case of.Ref.String() != "":
			name = strings.TrimPrefix(of.Ref.String(), schemasAt)
			of = s[name]
		case len(of.AllOf) == 1 && len(of.Properties) == 0: // so Kubernetes adds a default to a reference
			of = &of.AllOf[0]
		default:
			return name, of
		}
	}
	return name, nil
}

// pair is the schema of one path in both releases. A release that does not have the path has nil.
type pair struct {
	name string // of the definition
	side [2]*spec.Schema
}

func (p pair) known() bool { return p.side[0] != nil || p.side[1] != nil }

// either is the schema of the newer release, or else of the older one. It is never nil.
func (p pair) either() *spec.Schema {
	for _, one := range slices.Backward(p.side[:]) {
		if one != nil {
			return one
		}
	}
	return &spec.Schema{}
}

// shape is what a value looks like in JSON.
type shape int

const (
	anything shape = iota // every value, and objects without known fields
	object
	mapping
	list
	text
	whole
	decimal
	truth
)

func (p pair) shape() shape {
	s := p.either()
	switch {
	case len(s.Properties) > 0:
		return object
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return mapping
	case s.Type.Contains("array"):
		return list
	case s.Type.Contains("string"):
		return text
	case s.Type.Contains("integer"):
		return whole
	case s.Type.Contains("number"):
		return decimal
	case s.Type.Contains("boolean"):
		return truth
	case len(s.OneOf) > 0 || s.Format == "int-or-string" || isTrue(s, "x-kubernetes-int-or-string"):
		return text // quantities, and integers or texts
	}
	return anything
}

func isTrue(s *spec.Schema, extension string) bool {
	is, _ := s.Extensions.GetBool(extension)
	return is
}

// every applies a step to both schemas.
func (p pair) every(all [2]Schemas, step func(*spec.Schema) *spec.Schema) (next pair) {
	for i, s := range p.side {
		if s == nil {
			continue
		}
		name, to := all[i].resolve(step(s))
		if next.side[i] = to; name != "" {
			next.name = name
		}
	}
	return next
}

func (p pair) property(all [2]Schemas, name string) pair {
	return p.every(all, func(s *spec.Schema) *spec.Schema {
		if of, ok := s.Properties[name]; ok {
			return &of
		}
		return nil
	})
}

// item is the schema of the items of a list, or of the values of a map.
func (p pair) item(all [2]Schemas) pair {
	return p.every(all, func(s *spec.Schema) *spec.Schema {
		if s.Items != nil {
			return s.Items.Schema
		}
		if s.AdditionalProperties != nil {
			return s.AdditionalProperties.Schema
		}
		return nil
	})
}

// properties are the names of the fields that either release has.
func (p pair) properties() []string {
	names := map[string]bool{}
	for _, s := range p.side {
		if s != nil {
			for name := range s.Properties {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// required are the names of the fields that either release requires.
func (p pair) required() (names []string) {
	for _, s := range p.side {
		if s != nil {
			names = append(names, s.Required...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// members are the members of an enumeration.
func (p pair) members() (all []string) {
	for _, s := range p.side {
		if s == nil {
			continue
		}
		for _, one := range s.Enum {
			if member, ok := one.(string); ok && member != "" {
				all = append(all, member)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// at returns the schema of a place in an object, and its path for people.
func (p pair) at(all [2]Schemas, place []string) (of pair, path string) {
	for _, step := range place {
		if shape := p.shape(); shape == list || shape == mapping {
			p, path = p.item(all), path+"[*]"
			continue
		}
		p = p.property(all, step)
		if path != "" {
			path += "."
		}
		path += step
	}
	return p, path
}
