package peers

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy"
)

// Every server serves custom resources and aggregated APIs as soon as it has seen their definitions
// in etcd. A peer's discovery lists them too, but it may still list a resource that was just
// deleted. Then a request would be sent to the peer for nothing. So extensions that exist are not
// taken from peers. For a grace, extensions that were deleted are not taken from peers either. The
// policy says which of a peer's resources this excludes (proxy.ExtensionPolicy). These rules say
// what exists:
//
//   - A version of a CustomResourceDefinition counts if it is served (spec.versions[].served) and
//     the definition is Established or has NamesAccepted. Then kube-apiservers answer requests for
//     it (customresource_handler.go in k8s.io/apiextensions-apiserver), until the definition is
//     gone. No server serves a definition with refused names, and such a definition must not hide a
//     peer's built-in resource with the same name.
//   - A definition's other versions are reported as Unserved. Upstream's presets need them
//     (crdExtractor in k8s.io/kubernetes, pkg/controlplane/apiserver/aggregator.go).
//   - An APIService counts if it names a Service (apiServiceExtractor, same file), available or
//     not: the local server answers requests for it, with 503 if its backend is down. An APIService
//     without a Service stands for a built-in group version or a custom resource.
//
// A version that a definition no longer serves counts as deleted. The set is always complete.
// Several changes may appear as one.

var (
	customResourceDefinitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// extensions reads all definitions. It leaves out malformed ones.
func extensions(definitions, services []*unstructured.Unstructured) proxy.Extensions {
	e := proxy.Extensions{Created: map[schema.GroupVersionResource]time.Time{}}
	for _, d := range definitions {
		served, unserved := customResources(d.Object)
		e.CustomResources = append(e.CustomResources, served...)
		if created := d.GetCreationTimestamp(); !created.IsZero() {
			for _, gvr := range served {
				e.Created[gvr] = created.Time
			}
		}
		e.Unserved = append(e.Unserved, unserved...)
	}
	for _, s := range services {
		if gv, ok := aggregated(s.Object); ok {
			e.Aggregated = append(e.Aggregated, gv)
		}
	}
	slices.SortFunc(e.CustomResources, compareResources)
	slices.SortFunc(e.Unserved, compareResources)
	slices.SortFunc(e.Aggregated, func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return e
}

func compareResources(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
}

// customResources returns the versions of a CustomResourceDefinition.
func customResources(crd map[string]any) (served, unserved []schema.GroupVersionResource) {
	group, plural := text(crd, "spec", "group"), text(crd, "spec", "names", "plural")
	if group == "" || plural == "" {
		return nil, nil
	}
	answered := condition(crd, "Established") || condition(crd, "NamesAccepted")
	for _, v := range objects(crd, "spec", "versions") {
		gvr := schema.GroupVersionResource{Group: group, Version: text(v, "name"), Resource: plural}
		if gvr.Version == "" {
			continue
		}
		if on, _ := v["served"].(bool); on && answered {
			served = append(served, gvr)
		} else {
			unserved = append(unserved, gvr)
		}
	}
	return served, unserved
}

// aggregated returns the group version of an APIService that names a Service.
func aggregated(service map[string]any) (schema.GroupVersion, bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(service, "spec", "service")
	named, _ := value.(map[string]any)
	gv := schema.GroupVersion{Group: text(service, "spec", "group"), Version: text(service, "spec", "version")}
	return gv, named != nil && gv.Version != ""
}

func condition(object map[string]any, kind string) bool {
	for _, c := range objects(object, "status", "conditions") {
		if text(c, "type") == kind {
			return text(c, "status") == "True"
		}
	}
	return false
}

// text and objects read fields that may be missing or of another type.
func text(object map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(object, path...)
	return s
}

func objects(object map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := value.([]any)
	found := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if o, ok := item.(map[string]any); ok {
			found = append(found, o)
		}
	}
	return found
}

// trim is an informer's transform. It drops the fields that are not read, because schemas take
// megabytes.
func trim(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	u.SetManagedFields(nil)
	u.SetAnnotations(nil)
	for _, v := range objects(u.Object, "spec", "versions") {
		for key := range v {
			if key != "name" && key != "served" {
				delete(v, key)
			}
		}
	}
	unstructured.RemoveNestedField(u.Object, "spec", "conversion")
	unstructured.RemoveNestedField(u.Object, "spec", "caBundle")
	return u, nil
}
