package discovery

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFilter(t *testing.T) {
	named := func(names ...string) func(schema.GroupVersionResource) bool {
		return func(gvr schema.GroupVersionResource) bool {
			for _, name := range names {
				if gvr.GroupVersion().String()+":"+gvr.Resource == name {
					return true
				}
			}
			return false
		}
	}
	const all = "apps/v1:deployments,replicasets apps/v1beta1:deployments batch/v1:jobs empty/v1 bare"
	for _, c := range []struct {
		name string
		drop func(schema.GroupVersionResource) bool
		want string
	}{
		{"nothing", named(), all},
		{"unlisted resources", named("apps/v2:deployments", "batch/v1:"), all},
		{"a resource", named("apps/v1:deployments"), "apps/v1:replicasets apps/v1beta1:deployments batch/v1:jobs empty/v1 bare"},
		{"the last resource", named("apps/v1:replicasets"), "apps/v1:deployments apps/v1beta1:deployments batch/v1:jobs empty/v1 bare"},
		{"a version", named("apps/v1beta1:deployments"), "apps/v1:deployments,replicasets batch/v1:jobs empty/v1 bare"},
		{"a group", named("batch/v1:jobs"), "apps/v1:deployments,replicasets apps/v1beta1:deployments empty/v1 bare"},
		{"an empty version", named("empty/v1:"), "apps/v1:deployments,replicasets apps/v1beta1:deployments batch/v1:jobs bare"},
		{"a group version", func(gvr schema.GroupVersionResource) bool {
			return gvr.GroupVersion() == schema.GroupVersion{Group: "apps", Version: "v1"}
		}, "apps/v1beta1:deployments batch/v1:jobs empty/v1 bare"},
		{"everything", func(schema.GroupVersionResource) bool { return true }, "bare"},
	} {
		t.Run(c.name, func(t *testing.T) {
			groups := doc(all)
			before := encoded(t, groups)
			got := Filter(groups, c.drop)
			if text(got) != c.want {
				t.Errorf("got  %s\nwant %s", text(got), c.want)
			}
			if (c.want == all) != sameBacking(got, groups) {
				t.Error("the same slice is returned if and only if nothing was dropped")
			}
			if encoded(t, groups) != before {
				t.Error("the groups were modified")
			}
		})
	}
	groups := doc(all)
	if got := Filter(groups, named("batch/v1:jobs")); !sameBacking(got[0].Versions, groups[0].Versions) {
		t.Error("a group that did not change is a copy")
	}
}

func TestFilterDropsExactlyTheSelected(t *testing.T) {
	for seed := range uint64(500) {
		r := newRandom(seed)
		groups := r.groups()
		salt := r.Uint32()
		drop := func(gvr schema.GroupVersionResource) bool {
			return len(gvr.Resource) > 0 && (uint32(gvr.Resource[0])+uint32(len(gvr.Version))+uint32(len(gvr.Group))+salt)%3 == 0
		}
		before := NewIndex(groups)
		filtered := Filter(groups, drop)
		after := NewIndex(filtered)
		for _, g := range groups {
			for _, v := range g.Versions {
				for _, res := range v.Resources {
					dropped := drop(schema.GroupVersionResource{Group: g.Name, Version: v.Version, Resource: res.Resource})
					if after.Resource(g.Name, v.Version, res.Resource, "") == dropped || !before.Resource(g.Name, v.Version, res.Resource, "") {
						t.Fatalf("seed %d: %s/%s %s: drop says %v", seed, g.Name, v.Version, res.Resource, dropped)
					}
				}
			}
		}
		if again := Filter(filtered, drop); !sameBacking(again, filtered) {
			t.Fatalf("seed %d: filtering again drops more", seed)
		}
	}
}
