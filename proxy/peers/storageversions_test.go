package peers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy"
)

func storageVersion(name string, served map[string][]string) *apiserverinternalv1alpha1.StorageVersion {
	o := &apiserverinternalv1alpha1.StorageVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for id, versions := range served {
		o.Status.StorageVersions = append(o.Status.StorageVersions,
			apiserverinternalv1alpha1.ServerStorageVersion{APIServerID: id, ServedVersions: versions})
	}
	return o
}

func TestStorageVersions(t *testing.T) {
	event, errs := storageVersions([]*apiserverinternalv1alpha1.StorageVersion{
		storageVersion("apps.deployments", map[string][]string{"b": {"apps/v1"}, "a": {"v1", "v1beta1"}, "": {"v1"}}),
		storageVersion("core.pods", map[string][]string{"a": {"v1"}}),
		storageVersion("flowcontrol.apiserver.k8s.io.flowschemas", map[string][]string{"a": {"flowcontrol.apiserver.k8s.io/v1", "x/y/z"}}),
		storageVersion("batch.jobs", nil),
		storageVersion("nodots", map[string][]string{"a": {"v1"}}),
		storageVersion("", map[string][]string{"a": {"v1"}}),
		storageVersion(".pods", map[string][]string{"a": {"v1"}}),
		storageVersion("apps.", map[string][]string{"a": {"v1"}}),
	})
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	want := map[schema.GroupVersionResource][]proxy.ServerID{
		gvr("apps", "v1", "deployments"):                            {"a", "b"},
		gvr("apps", "v1beta1", "deployments"):                       {"a"},
		gvr("", "v1", "pods"):                                       {"a"},
		gvr("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"):    {"a"},
		gvr("flowcontrol.apiserver.k8s.io", "x/y/z", "flowschemas"): {"a"},
	}
	if diff := cmp.Diff(want, event.Served); diff != "" {
		t.Error(diff)
	}
	if len(errs) != 4 {
		t.Errorf("%d names were found wanting, want 4: %v", len(errs), errs)
	}
	for _, err := range errs {
		if !strings.Contains(err.Error(), "<group>.<resource>") {
			t.Errorf("%v does not say what a name should be", err)
		}
	}
}
