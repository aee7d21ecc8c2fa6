package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// described is an OpenAPI description of the group version example.com/v1. A path refers to the
// schema of its kind. This schema refers to the schema Meta. Each value names its author.
func described(who string, paths, kinds []string, more ...string) []byte {
	var items, schemas []string
	for _, path := range paths {
		items = append(items, fmt.Sprintf(`%q:{"get":{"description":%q,"responses":{"200":{"description":"OK","content":{"application/json":{"schema":{"$ref":"#/components/schemas/com.example.%s"}}}}}}}`,
			path, who, kinds[len(items)]))
	}
	for _, kind := range kinds {
		schemas = append(schemas, fmt.Sprintf(`"com.example.%s":{"description":%q,"properties":{"metadata":{"$ref":"#/components/schemas/Meta"}},"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":%q}]}`,
			kind, who, kind))
	}
	schemas = append(append(schemas, fmt.Sprintf(`"Meta":{"description":%q}`, who)), more...)
	return fmt.Appendf(nil, `{"openapi":"3.0.0","info":{"title":%q,"version":"1"},"paths":{%s},"components":{"schemas":{%s},"securitySchemes":{%q:{"type":"apiKey"},"BearerToken":{"type":"apiKey","description":%q}}}}`,
		who, strings.Join(items, ","), strings.Join(schemas, ","), who, who)
}

func decoded(t *testing.T, body []byte) *OpenAPIVersion {
	t.Helper()
	d, err := DecodeOpenAPIVersion(body)
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return d
}

// whoWrote returns the author of each path, schema and security scheme.
func whoWrote(t *testing.T, d *OpenAPIVersion) map[string]string {
	t.Helper()
	body, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Info  struct{ Title string }
		Paths map[string]struct {
			Get struct{ Description string }
		}
		Components struct {
			Schemas, SecuritySchemes map[string]struct{ Description string }
		}
	}
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	wrote := map[string]string{"info": document.Info.Title}
	for path, item := range document.Paths {
		wrote[path] = item.Get.Description
	}
	for name, schema := range document.Components.Schemas {
		wrote[name] = schema.Description
	}
	for name, scheme := range document.Components.SecuritySchemes {
		wrote["scheme "+name] = scheme.Description
	}
	return wrote
}

func TestAddOpenAPI(t *testing.T) {
	const widgets, gadgets, others = "/apis/example.com/v1/widgets", "/apis/example.com/v1/gadgets", "/apis/example.com/v1/others"
	only := func(want string) func(string) bool { return func(path string) bool { return path == want } }
	kind := func(want ...string) func(GroupVersionKind) bool {
		return func(k GroupVersionKind) bool {
			for _, w := range want {
				if k == (GroupVersionKind{"example.com", "v1", w}) {
					return true
				}
			}
			return false
		}
	}
	spec := `"Spec~1x":{"description":"peer","items":[{"$ref":"#/components/schemas/Deep"}]}`
	for name, c := range map[string]struct {
		own, peer []byte
		path      func(string) bool
		kind      func(GroupVersionKind) bool
		want      map[string]string
	}{
		"only the peer's own descriptions are added": {
			described("local", []string{widgets}, []string{"Widget"}),
			described("peer", []string{widgets, gadgets, others}, []string{"Widget", "Gadget", "Other"}, `"Unused":{"description":"peer"}`),
			only(gadgets), kind("Gadget"),
			map[string]string{"info": "local", widgets: "local", gadgets: "peer", "com.example.Widget": "local", "com.example.Gadget": "peer", "Meta": "local",
				"scheme local": "", "scheme peer": "", "scheme BearerToken": "local"},
		},
		"the path and the schema of a kind that only the peer serves replace the local server's": {
			described("local", []string{widgets, gadgets}, []string{"Widget", "Gadget"}),
			described("peer", []string{widgets, gadgets}, []string{"Widget", "Gadget"}),
			only(gadgets), kind("Gadget"),
			map[string]string{"info": "local", widgets: "local", gadgets: "peer", "com.example.Widget": "local", "com.example.Gadget": "peer", "Meta": "local",
				"scheme local": "", "scheme peer": "", "scheme BearerToken": "local"},
		},
		"of a kind that the local server serves too, only the path is added": {
			described("local", []string{widgets}, []string{"Widget"}),
			described("peer", []string{widgets + "/{name}/status"}, []string{"Widget"}),
			only(widgets + "/{name}/status"), kind(),
			map[string]string{"info": "local", widgets: "local", widgets + "/{name}/status": "peer", "com.example.Widget": "local", "Meta": "local",
				"scheme local": "", "scheme peer": "", "scheme BearerToken": "local"},
		},
		"schemas are followed through schemas": {
			described("local", nil, nil),
			described("peer", []string{gadgets}, []string{"Gadget"}, `"com.example.GadgetList":{"description":"peer","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"GadgetList"}],"items":{"$ref":"#/components/schemas/Chain"}}`,
				`"Chain":{"description":"peer","properties":{"a":{"$ref":"#/components/schemas/Chain"},"b":{"$ref":"#/components/schemas/Deep"},"c":{"$ref":"#/components/schemas/Nowhere"}}}`, `"Deep":{"description":"peer"}`, spec),
			only(gadgets), kind("Gadget", "GadgetList"),
			map[string]string{"info": "local", gadgets: "peer", "com.example.Gadget": "peer", "com.example.GadgetList": "peer", "Chain": "peer", "Deep": "peer", "Meta": "local",
				"scheme local": "", "scheme peer": "", "scheme BearerToken": "local"},
		},
		"a description without components gets those that are needed": {
			[]byte(`{"openapi":"3.0.0","info":{"title":"local"},"paths":{}}`),
			described("peer", []string{gadgets}, []string{"Gadget"}),
			only(gadgets), kind("Gadget"),
			map[string]string{"info": "local", gadgets: "peer", "com.example.Gadget": "peer", "Meta": "peer", "scheme peer": "", "scheme BearerToken": "peer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := decoded(t, c.own)
			before, _ := own.Encode()
			merged, err := own.Add(decoded(t, c.peer), c.path, c.kind)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, whoWrote(t, merged)); diff != "" {
				t.Errorf("the author (-want +got):\n%s", diff)
			}
			if after, _ := own.Encode(); string(after) != string(before) {
				t.Error("the local server's description was changed")
			}
			first, _ := merged.Encode()
			again, _ := own.Add(decoded(t, c.peer), c.path, c.kind)
			if second, _ := again.Encode(); string(first) != string(second) {
				t.Error("the same merge has other bytes")
			}
		})
	}
	t.Run("a peer that describes nothing of it is an error", func(t *testing.T) {
		own, peer := decoded(t, described("local", []string{widgets}, []string{"Widget"})), decoded(t, described("peer", []string{others}, []string{"Other"}))
		if _, err := own.Add(peer, only(gadgets), kind("Gadget")); err == nil {
			t.Error("no error")
		}
	})
}

func TestDecodeOpenAPIVersionRefusesOthers(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":           "",
		"no JSON":           "<html>",
		"a list":            "[]",
		"null":              "null",
		"OpenAPI 2":         `{"swagger":"2.0","paths":{}}`,
		"a Status":          `{"kind":"Status","code":403}`,
		"no paths":          `{"openapi":"3.0.0"}`,
		"paths are a list":  `{"openapi":"3.0.0","paths":[]}`,
		"components are no": `{"openapi":"3.0.0","paths":{},"components":{"schemas":3}}`,
		"it is too large":   `{"openapi":"3.0.0","paths":{}}` + strings.Repeat(" ", MaxOpenAPI),
	} {
		if d, err := DecodeOpenAPIVersion([]byte(body)); err == nil {
			t.Errorf("%s: decoded as %+v", name, d)
		}
	}
}

// Only a "$ref" to a component of the same description refers to it.
func TestReferences(t *testing.T) {
	for part, want := range map[string][]reference{
		`{"$ref":"#/components/schemas/A"}`:                                {{"schemas", "A"}},
		`[{"a":[{"$ref":"#/components/schemas/A"}]}]`:                      {{"schemas", "A"}},
		`{"$ref":"#/components/parameters/b"}`:                             {{"parameters", "b"}},
		`{"$ref":"#/components/schemas/a~1b~0c"}`:                          {{"schemas", "a/b~c"}},
		`{"description":"#/components/schemas/A"}`:                         nil,
		`{"ref":"#/components/schemas/A","$reference":"#/components/a/A"}`: nil,
		`{"$ref":"schemas/A"}`:                                             nil,
		`{"$ref":"#/components/schemas"}`:                                  nil,
		`{"$ref":"#/definitions/A"}`:                                       nil,
		`{"$ref":"https://example.com/#/components/schemas/A"}`:            nil,
		`{"$ref":["#/components/schemas/A"]}`:                              nil,
		`{"$ref":7}`:                                                       nil,
		`{"$ref":{"$ref":"#/components/schemas/A"}}`:                       {{"schemas", "A"}},
		`"#/components/schemas/A"`:                                         nil,
		`{"$ref":""}`:                                                      nil,
		`null`:                                                             nil,
	} {
		if diff := cmp.Diff(want, referencesIn(json.RawMessage(part)), cmp.AllowUnexported(reference{})); diff != "" {
			t.Errorf("%s:\n%s", part, diff)
		}
	}
}

func FuzzAddOpenAPI(f *testing.F) {
	f.Add(described("peer", []string{"/a", "/b"}, []string{"A", "B"}))
	f.Add([]byte(`{"openapi":"3.0.0","paths":{"/a":null},"components":{"schemas":{"A":{"$ref":"#/components/schemas/A"}}}}`))
	own := described("local", []string{"/a"}, []string{"A"})
	f.Fuzz(func(t *testing.T, body []byte) {
		peer, err := DecodeOpenAPIVersion(body)
		if err != nil {
			return
		}
		merged, err := decoded(t, own).Add(peer, func(string) bool { return true }, func(GroupVersionKind) bool { return true })
		if err != nil {
			return
		}
		encoded, err := merged.Encode()
		if err != nil {
			t.Fatalf("a decoded description cannot be encoded: %v", err)
		}
		decoded(t, encoded)
	})
}
