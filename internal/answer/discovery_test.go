package answer

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// recordedDocument returns a discovery document recorded from a real server.
func recordedDocument(t *testing.T, name string) history.Document {
	t.Helper()
	body, err := os.ReadFile("testdata/discovery/" + name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ParseDiscovery(body)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestParseDiscovery(t *testing.T) {
	doc := recordedDocument(t, "v1.37.1.apis.json")
	if doc.Bytes != 27022 || !strings.HasPrefix(doc.Hash, "sha256:") || len(doc.Hash) != len("sha256:")+64 {
		t.Errorf("%d bytes, hash %q", doc.Bytes, doc.Hash)
	}
	var groups []string
	for _, r := range doc.Resources {
		if len(groups) == 0 || groups[len(groups)-1] != r.Group {
			groups = append(groups, r.Group)
		}
	}
	if want := []string{"apiregistration.k8s.io", "apps", "events.k8s.io"}; !slices.Equal(groups[:3], want) {
		t.Errorf("groups start with %v, want the order of the document, %v", groups[:3], want)
	}
	i := slices.IndexFunc(doc.Resources, func(r history.Resource) bool { return r.Resource == "deployments" })
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	sub := []string{"get", "patch", "update"}
	want := history.Resource{
		GVR: history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true, Verbs: verbs,
		Subresources: []history.Subresource{{Name: "scale", Kind: "Scale", Verbs: sub}, {Name: "status", Kind: "Deployment", Verbs: sub}},
	}
	if got := doc.Resources[i]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseDiscoveryRefuses(t *testing.T) {
	legacy, err := os.ReadFile("testdata/discovery/legacy.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, body, want string }{
		{"legacy group list", string(legacy), `got kind "APIGroupList"`},
		{"another version", `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v9"}`, "apidiscovery.k8s.io/v9"},
		{"text", "404 page not found", "invalid character"},
		{"nothing", "", "unexpected end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParseDiscovery([]byte(tt.body)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

// FuzzParseDiscovery checks that parsing never panics and that the result depends only on the
// bytes.
func FuzzParseDiscovery(f *testing.F) {
	for _, name := range []string{"api.json", "v1.36.3.apis.json", "legacy.json"} {
		body, err := os.ReadFile("testdata/discovery/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"versions":[{"resources":[{}]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := ParseDiscovery(body)
		if err != nil {
			return
		}
		again, err := ParseDiscovery(slices.Clone(body))
		if err != nil || !reflect.DeepEqual(doc, again) {
			t.Fatalf("parsed twice, got %+v and %+v (%v)", doc, again, err)
		}
		if doc.Bytes != len(body) || doc.Hash != Hash(body) {
			t.Fatalf("the document is not of these bytes: %+v", doc)
		}
	})
}

// FuzzParse checks the same for the other documents.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"api.json", "legacy.json"} {
		body, err := os.ReadFile("testdata/discovery/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"paths":{"apis/apps/v1":{},"/api/v1/pods":{}}}`))
	f.Add([]byte("k8s\x00\x0a\x0f"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, parse := range []func([]byte) (history.Document, error){ParseLegacy, ParseOpenAPI} {
			doc, err := parse(body)
			if err != nil {
				continue
			}
			again, err := parse(slices.Clone(body))
			if err != nil || !reflect.DeepEqual(doc, again) || doc.Hash != Hash(body) {
				t.Fatalf("parsed twice, got %+v and %+v (%v)", doc, again, err)
			}
		}
		Inspect(body)
	})
}
