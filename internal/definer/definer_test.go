package definer

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/scenario"
)

var widgets = scenario.Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1", "v2"}}

// Exactly one version is stored, and it is not a served one, because the API refuses to drop the
// stored version. (Tests in internal/e2e apply the definition to real servers.)
func TestACustomResourceServesItsVersionsAndStoresAnother(t *testing.T) {
	object := customResource(widgets)
	if got := object.GetName(); got != "widgets.example.com" {
		t.Errorf("its name is %s: the API wants PLURAL.GROUP", got)
	}
	versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	var served, stored []string
	for _, v := range versions {
		v := v.(map[string]any)
		if v["served"] == true {
			served = append(served, v["name"].(string))
		}
		if v["storage"] == true {
			stored = append(stored, v["name"].(string))
		}
	}
	if strings.Join(served, " ") != "v1 v2" || strings.Join(stored, " ") != scenario.StoredVersion {
		t.Errorf("it serves %q and stores %q", served, stored)
	}
}

func TestAConditionHolds(t *testing.T) {
	with := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	}
	condition := func(kind, status string) map[string]any { return map[string]any{"type": kind, "status": status} }
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"just created":    {&unstructured.Unstructured{Object: map[string]any{}}, false},
		"names accepted":  {with(condition("NamesAccepted", "True"), condition("Established", "False")), false},
		"established":     {with(condition("NamesAccepted", "True"), condition("Established", "True")), true},
		"no such thing":   {with("Established"), false},
		"no list of them": {&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": "True"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := conditionHolds(c.object, "Established"); got != c.want {
				t.Errorf("established: %v, want %v", got, c.want)
			}
		})
	}
}

// none is a cluster without a ready server.
type none struct{ cluster.Reachable }

func (none) Serving(string) int { return 0 }

func TestDefineNeedsAReadyServerAndAnExtensionAPIServer(t *testing.T) {
	d := New(none{}, []string{"a", "b"})
	aggregated := widgets
	aggregated.Aggregated = true
	for want, err := range map[string]error{
		"no server is ready":         d.Define(t.Context(), widgets),
		"no server is":               d.Undefine(t.Context(), widgets),
		"has no extension apiserver": d.Define(t.Context(), aggregated),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
}

func TestNamesAndStorageOfADefinition(t *testing.T) {
	d := scenario.Definition{
		Group: "resource.k8s.io", Resource: "devicetaintrules", Versions: []string{"v1", "v9"}, Kind: "DeviceTaintRule", ShortNames: []string{"dtr"},
		Categories: []string{"all"}, Storage: "v9",
	}
	object := customResource(d)
	for path, want := range map[string]string{"kind": "DeviceTaintRule", "listKind": "DeviceTaintRuleList", "plural": "devicetaintrules"} {
		if got, _, _ := unstructured.NestedString(object.Object, "spec", "names", path); got != want {
			t.Errorf("its %s is %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"shortNames": "dtr", "categories": "all"} {
		if got, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "names", path); strings.Join(got, " ") != want {
			t.Errorf("its %s are %q, want %q", path, got, want)
		}
	}
	if object.GetAnnotations()["api-approved.kubernetes.io"] == "" {
		t.Error("it is not approved: no server would take it into a protected group")
	}
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	var all []string
	for _, v := range versions {
		v := v.(map[string]any)
		all = append(all, v["name"].(string))
		if v["served"] != true || v["storage"] != (v["name"] == "v9") {
			t.Errorf("version %v", v)
		}
	}
	if strings.Join(all, " ") != "v1 v9" {
		t.Errorf("its versions are %q: one of them is stored, so there is no other", all)
	}
}
