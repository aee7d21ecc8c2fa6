package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxOpenAPI is the size in bytes of the largest OpenAPI description of one group version that
// [DecodeOpenAPIVersion] reads. Kubernetes' largest description, of core/v1, has 1.6 MB.
const MaxOpenAPI = 8 << 20

// OpenAPIVersion is the OpenAPI v3 description of one group version. It is decoded only as far as
// [OpenAPIVersion.Add] needs it. It is immutable.
type OpenAPIVersion struct {
	rest       map[string]json.RawMessage            // everything except paths and components
	paths      map[string]json.RawMessage            // by path
	components map[string]map[string]json.RawMessage // by section ("schemas") and name
}

// DecodeOpenAPIVersion reads the description of one group version in JSON. The body need not be
// trusted. The result shares memory with it.
func DecodeOpenAPIVersion(body []byte) (*OpenAPIVersion, error) {
	if len(body) > MaxOpenAPI {
		return nil, fmt.Errorf("decode an OpenAPI description: the body has %d bytes, more than the %d that are read", len(body), MaxOpenAPI)
	}
	d := &OpenAPIVersion{}
	if err := json.Unmarshal(body, &d.rest); err != nil {
		return nil, fmt.Errorf("decode an OpenAPI description: %w", err)
	}
	var version string
	if json.Unmarshal(d.rest["openapi"], &version) != nil || !strings.HasPrefix(version, "3.") {
		return nil, errors.New("decode an OpenAPI description: it has no version 3.x in the field openapi")
	}
	for name, into := range map[string]any{"paths": &d.paths, "components": &d.components} {
		if part, ok := d.rest[name]; ok {
			if err := json.Unmarshal(part, into); err != nil {
				return nil, fmt.Errorf("decode the %s of an OpenAPI description: %w", name, err)
			}
		}
		delete(d.rest, name)
	}
	if d.paths == nil {
		return nil, errors.New("decode an OpenAPI description: it has no paths")
	}
	return d, nil
}

// Add returns the description with those paths of another server for which path returns true, and
// with the components to which these paths refer. Add calls both functions with parts of the other
// server's description.
//
// An added path replaces a path of the same name. If both descriptions have a component, the
// component of d stays. The exception is the schema of a kind of this group version for which kind
// returns true: it is replaced. Security schemes of both are kept. It is an error if no path is
// added.
func (d *OpenAPIVersion) Add(other *OpenAPIVersion, path func(string) bool, kind func(GroupVersionKind) bool) (*OpenAPIVersion, error) {
	merged := &OpenAPIVersion{rest: d.rest, paths: maps.Clone(d.paths), components: map[string]map[string]json.RawMessage{}}
	for section, named := range d.components {
		merged.components[section] = maps.Clone(named)
	}
	var references []reference // in the added parts
	found := false
	for name, item := range other.paths {
		if path(name) {
			found = true
			merged.paths[name] = item
			references = append(references, referencesIn(item)...)
		}
	}
	if !found {
		return nil, errors.New("merge an OpenAPI description: it describes none of the resources that it should")
	}
	for name, schema := range other.components["schemas"] {
		if slices.ContainsFunc(kindsOf(schema), kind) {
			references = append(references, reference{"schemas", name})
		}
	}
	added := map[reference]bool{}
	for len(references) > 0 {
		r := references[len(references)-1]
		references = references[:len(references)-1]
		component, ok := other.components[r.section][r.name]
		if _, has := merged.components[r.section][r.name]; !ok || added[r] || has && !slices.ContainsFunc(kindsOf(component), kind) {
			continue
		}
		added[r] = true
		merged.set(r, component)
		references = append(references, referencesIn(component)...)
	}
	const schemes = "securitySchemes" // operations name security schemes without a reference
	for name, scheme := range other.components[schemes] {
		if _, has := merged.components[schemes][name]; !has {
			merged.set(reference{schemes, name}, scheme)
		}
	}
	return merged, nil
}

func (d *OpenAPIVersion) set(r reference, component json.RawMessage) {
	if d.components[r.section] == nil {
		d.components[r.section] = map[string]json.RawMessage{}
	}
	d.components[r.section][r.name] = component
}

// Encode returns the description in JSON. The same description has the same bytes.
func (d *OpenAPIVersion) Encode() ([]byte, error) {
	document := map[string]any{"paths": d.paths}
	for name, part := range d.rest {
		document[name] = part
	}
	if len(d.components) > 0 {
		document["components"] = d.components
	}
	body, err := json.Marshal(document) // sorted by name at every decoded level
	if err != nil {
		return nil, fmt.Errorf("encode an OpenAPI description: %w", err)
	}
	return body, nil
}

// reference names a component: "#/components/<section>/<name>".
type reference struct{ section, name string }

// referencesIn returns the components to which a part of a description refers.
func referencesIn(part json.RawMessage) []reference {
	var value any
	if json.Unmarshal(part, &value) != nil {
		return nil // unreachable: it is a part of decoded JSON
	}
	var found []reference
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for name, item := range v {
				text, _ := item.(string)
				path, here := strings.CutPrefix(text, "#/components/") // else it refers to another document
				if section, component, ok := strings.Cut(path, "/"); name == "$ref" && here && ok {
					found = append(found, reference{section, unescapePointer.Replace(component)})
				}
				walk(item)
			}
		}
	}
	walk(value)
	return found
}

// unescapePointer decodes a part of a JSON pointer (RFC 6901, 4).
var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// GroupVersionKind is a kind as a schema names it.
type GroupVersionKind struct {
	Group, Version, Kind string
}

// kindsOf returns the kinds that a schema describes.
func kindsOf(schema json.RawMessage) []GroupVersionKind {
	var s struct {
		Kinds []GroupVersionKind `json:"x-kubernetes-group-version-kind"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Kinds
}
