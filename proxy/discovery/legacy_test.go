package discovery

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints"
)

// TestLegacyListsHaveEverything converts recorded documents to legacy lists, and back by a
// kube-apiserver's own code: nothing may be lost.
func TestLegacyListsHaveEverything(t *testing.T) {
	for _, what := range []string{"api", "apis"} {
		for _, s := range recordedSources(t, what) {
			for _, g := range copied(s.Groups) {
				for _, v := range g.Versions {
					list, ok := ResourcesOf(s.Groups, g.Name, v.Version)
					if !ok {
						t.Fatalf("%s/%s is not found", g.Name, v.Version)
					}
					got, err := endpoints.ConvertGroupVersionIntoToDiscovery(list.APIResources)
					if err != nil {
						t.Fatal(err)
					}
					forgetKindsOfTheVersion(&g, &v)
					if diff := cmp.Diff(v.Resources, got); diff != "" {
						t.Errorf("%s %s/%s (-aggregated +from legacy):\n%s", s.Version, g.Name, v.Version, diff)
					}
				}
			}
		}
	}
}

// forgetKindsOfTheVersion clears the group and version of a kind if they are those of the version
// itself. Aggregated documents of custom resources have them, but legacy lists omit them.
func forgetKindsOfTheVersion(g *apidiscoveryv2.APIGroupDiscovery, v *apidiscoveryv2.APIVersionDiscovery) {
	forget := func(kind *metav1.GroupVersionKind) {
		if kind != nil && kind.Group == g.Name && kind.Version == v.Version {
			kind.Group, kind.Version = "", ""
		}
	}
	for i := range v.Resources {
		forget(v.Resources[i].ResponseKind)
		for j := range v.Resources[i].Subresources {
			forget(v.Resources[i].Subresources[j].ResponseKind)
		}
	}
}

func TestLegacyListsLeaveBearersOut(t *testing.T) {
	groups := Groups{{Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Resources: []apidiscoveryv2.APIResourceDiscovery{{
		Resource: "pods", Scope: apidiscoveryv2.ScopeNamespace, ResponseKind: &metav1.GroupVersionKind{},
		Subresources: []apidiscoveryv2.APISubresourceDiscovery{
			{Subresource: "exec", ResponseKind: &metav1.GroupVersionKind{Kind: "PodExecOptions"}, Verbs: []string{"get"}},
		},
	}}}}}}
	list, ok := ResourcesOf(groups, "", "v1")
	if !ok || len(list.APIResources) != 1 || list.APIResources[0].Name != "pods/exec" || !list.APIResources[0].Namespaced {
		t.Errorf("got %v", list)
	}
	if _, ok := ResourcesOf(groups, "", "v2"); ok {
		t.Error("v2 is found")
	}
	if _, ok := GroupOf(groups, "apps"); ok {
		t.Error("apps is found")
	}
}
