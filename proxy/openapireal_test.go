package proxy

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/openapi/openapitest"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// kindOfPath returns the kind of the operations at a path of a Kubernetes description, if it
// belongs to this version.
func kindOfPath(item map[string]any, group, version string) string {
	for _, operation := range item {
		if o, ok := operation.(map[string]any); ok {
			k, _ := o["x-kubernetes-group-version-kind"].(map[string]any)
			if k["group"] == group && k["version"] == version {
				return k["kind"].(string)
			}
		}
	}
	return ""
}

// An older server lacks one resource of a group version. The merge of its description with the
// newer server's must be equal to the newer server's description. The test uses some resources of
// Kubernetes' own descriptions.
func TestMergeOfKubernetesOwnDescriptions(t *testing.T) {
	s := newShell(t, Reference(), nil, neverAsked(t))
	paths, err := openapitest.NewEmbeddedFileClient().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []Resource{
		{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "pods"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "batch", Version: "v1", Resource: "cronjobs"}, {Group: "batch", Version: "v1", Resource: "jobs"},
	} {
		t.Run(of.String(), func(t *testing.T) {
			newer, err := paths[openAPIPath(of.root(), of.Group, of.Version)].Schema("application/json")
			if err != nil {
				t.Fatal(err)
			}
			missing := s.inDescription(t, newer, of)
			older := without(t, s, newer, missing)
			own, err := discovery.DecodeOpenAPIVersion(older)
			if err != nil {
				t.Fatal(err)
			}
			peer, err := discovery.DecodeOpenAPIVersion(newer)
			if err != nil {
				t.Fatal(err)
			}
			merged, err := own.Add(peer, func(path string) bool { return missing.has(path) }, missing.hasKind)
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := merged.Encode()
			if err != nil {
				t.Fatal(err)
			}
			want := decodedJSON(t, newer)
			if cmp.Equal(want, decodedJSON(t, older)) || !cmp.Equal(want, decodedJSON(t, encoded)) {
				t.Errorf("without %d resources and subresources, the merged description is not the newer one", len(missing))
			}
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			r.Header.Set("Accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
			if err := discovery.NewOpenAPIDescription("x", encoded).Serve(w, r, epoch); err != nil || w.Code != 200 || w.Body.Len() < len(newer)/10 {
				t.Errorf("in protobuf: %d, %d bytes, %v", w.Code, w.Body.Len(), err)
			}
		})
	}
}

// inDescription returns a resource and its subresources, with the kind.
func (s *shell) inDescription(t *testing.T, body []byte, of Resource) lacking {
	t.Helper()
	var document struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatal(err)
	}
	found := lacking{}
	for path, item := range document.Paths {
		r, ok := resourceAt(path)
		switch {
		case !ok || r.Resource != of.Resource:
		case r.Subresource != "":
			found[r] = ""
		default:
			found[r] = kindOfPath(item, of.Group, of.Version)
		}
	}
	if found[of] == "" {
		t.Fatalf("%s is not described: %v", of, found)
	}
	return found
}

func decodedJSON(t *testing.T, body []byte) (value map[string]any) {
	t.Helper()
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// without returns a description without the paths of resources and the schemas of their kinds.
func without(t *testing.T, s *shell, body []byte, missing lacking) []byte {
	t.Helper()
	document := decodedJSON(t, body)
	maps.DeleteFunc(document["paths"].(map[string]any), func(path string, _ any) bool { return missing.has(path) })
	maps.DeleteFunc(document["components"].(map[string]any)["schemas"].(map[string]any), func(_ string, schema any) bool {
		kinds, _ := schema.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		return slices.ContainsFunc(kinds, func(k any) bool {
			of := k.(map[string]any)
			return missing.hasKind(discovery.GroupVersionKind{Group: of["group"].(string), Version: of["version"].(string), Kind: of["kind"].(string)})
		})
	})
	older, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return older
}
