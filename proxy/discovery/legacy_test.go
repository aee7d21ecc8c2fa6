package discovery

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints"
)

// TestLegacyRoundTrip converts recorded documents to legacy lists and back: nothing may be lost.
func TestLegacyRoundTrip(t *testing.T) {
	for _, what := range []string{"api", "apis"} {
		for _, s := range recordedSources(t, what) {
			var lists []*metav1.APIResourceList
			for _, g := range s.Groups {
				for _, v := range g.Versions {
					list, ok := ResourcesOf(s.Groups, g.Name, v.Version)
					if !ok {
						t.Fatalf("%s/%s is not found", g.Name, v.Version)
					}
					lists = append([]*metav1.APIResourceList{list}, lists...)
				}
			}
			groups := legacyGroupList(s.Groups).Groups
			if what == "api" {
				groups = LegacyCore(legacyVersions(s.Groups))
			}
			got, err := FromLegacy(groups, lists)
			if err != nil {
				t.Fatal(err)
			}
			want := copied(s.Groups)
			for i := range want {
				for j := range want[i].Versions {
					forgetKindsOfTheVersion(&want[i], &want[i].Versions[j])
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s /%s (-aggregated +from legacy):\n%s", s.Version, what, diff)
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

// TestFromLegacyEqualsUpstream compares our conversion to aggregated documents with a
// kube-apiserver's own.
func TestFromLegacyEqualsUpstream(t *testing.T) {
	compared := 0
	check := func(name string, list []metav1.APIResource) {
		t.Helper()
		want, err := endpoints.ConvertGroupVersionIntoToDiscovery(list)
		if err != nil {
			t.Fatalf("%s: upstream: %v", name, err)
		}
		got, err := resourcesFromLegacy(list)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-upstream +ours):\n%s", name, diff)
		}
		compared++
	}
	check("subresources before their resource, and without one", []metav1.APIResource{
		{Name: "jobs/status", Kind: "Job", Namespaced: true, Verbs: metav1.Verbs{"get"}}, {Name: "jobs", Kind: "Job", Namespaced: true},
		{Name: "pods/exec", Namespaced: true}, {Name: "pods/x/y", Kind: "X", Group: "g", Version: "v", Namespaced: true},
	})
	for version, answers := range recordedAnswers(t) {
		for _, a := range answers {
			if strings.HasSuffix(a.Path, "/v1") && a.Accept == runtime.ContentTypeJSON {
				var list metav1.APIResourceList
				decodeLegacy(t, a.Accept, a.Body, &list)
				check(version+a.Path, list.APIResources)
			}
		}
	}
	if compared < 7 {
		t.Errorf("compared only %d lists", compared)
	}
}

func TestFromLegacy(t *testing.T) {
	versions := func(group string, names ...string) metav1.APIGroup {
		g := metav1.APIGroup{Name: group}
		for _, name := range names {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + name, Version: name})
		}
		return g
	}
	list := func(gv string, names ...string) *metav1.APIResourceList {
		l := &metav1.APIResourceList{GroupVersion: gv}
		for _, name := range names {
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: name, Kind: "X"})
		}
		return l
	}
	preferring := versions("apps", "v1beta1", "v1")
	preferring.PreferredVersion = preferring.Versions[1]
	got, err := FromLegacy([]metav1.APIGroup{preferring}, []*metav1.APIResourceList{nil, list("apps/v1", "deployments")})
	if err != nil {
		t.Fatal(err)
	}
	if text(got) != "apps/v1:deployments apps/v1beta1" || got[0].Versions[0].Freshness != "Current" || got[0].Versions[1].Freshness != "Stale" {
		t.Errorf("got %s, %v", text(got), got)
	}
	for name, c := range map[string]struct {
		lists []*metav1.APIResourceList
		want  string
	}{
		"twice":      {[]*metav1.APIResourceList{list("apps/v1"), list("apps/v1")}, `two resource lists of "apps/v1"`},
		"of nothing": {[]*metav1.APIResourceList{list("batch/v1")}, `"batch/v1" belongs to no group`},
		"no name":    {[]*metav1.APIResourceList{list("apps/v1", "")}, `resource list of "apps/v1": a resource named ""`},
		"no parent":  {[]*metav1.APIResourceList{list("apps/v1", "/status")}, `a resource named "/status"`},
	} {
		if _, err := FromLegacy([]metav1.APIGroup{preferring}, c.lists); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestLegacyListsLeaveBearersOut(t *testing.T) {
	groups, err := FromLegacy(LegacyCore(&metav1.APIVersions{Versions: []string{"v1"}}), []*metav1.APIResourceList{{
		GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods/exec", Kind: "PodExecOptions", Namespaced: true, Verbs: metav1.Verbs{"get"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
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
