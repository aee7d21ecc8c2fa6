package peers

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy"
)

// Custom resources and aggregated APIs
//
// Their definitions are objects in etcd, so every server serves them by itself as soon as it has seen the object. A peer's discovery lists
// them as well, but says nothing that the local server does not know better: it may list what was deleted a moment ago, and then
// a request for it would go to a peer, and discovery would list what nobody serves. So what exists as an extension is never taken
// from peers, and what ceased to exist is not for a grace. Which of a peer's resources that covers is the policy's business
// (proxy.ExtensionPolicy); what exists is read here:
//
//   - A version of a CustomResourceDefinition counts if it is served (spec.versions[].served), and the definition is Established or its
//     NamesAccepted: for these a kube-apiserver answers (customresource_handler.go in k8s.io/apiextensions-apiserver). A definition whose
//     names are refused is served by nobody; if it counted, it would hide a built-in resource of the same name that a newer peer
//     serves, and turn that into a 404. A definition that is being deleted counts until it is gone: it is served until then.
//   - Other versions that a definition lists are reported apart (Unserved): upstream counts every version it lists, whatever the
//     conditions (crdExtractor in k8s.io/kubernetes, pkg/controlplane/apiserver/aggregator.go), and its presets must as well.
//   - An APIService counts if it names a Service (apiServiceExtractor, the same file), available or not: the local server answers for it in
//     any case, with 503 if its backend is gone, and a peer's answer would be no better. One without a Service stands for what is
//     built in, or for a custom resource, and says nothing about peers.
//
// A version that a definition drops, or no longer serves, ceases to exist as one that is deleted does. The set is always complete, and
// changes between two looks at it may be seen as one.

var (
	customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices               = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// extensions reads all definitions. Whatever in them is not as it should be is left out.
func extensions(definitions, services []*unstructured.Unstructured) proxy.Extensions {
	var e proxy.Extensions
	for _, d := range definitions {
		served, unserved := customResources(d.Object)
		e.CustomResources = append(e.CustomResources, served...)
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
	if named, ok := field(service, "spec", "service").(map[string]any); !ok || named == nil {
		return schema.GroupVersion{}, false
	}
	gv := schema.GroupVersion{Group: text(service, "spec", "group"), Version: text(service, "spec", "version")}
	return gv, gv.Version != ""
}

// condition reports whether a condition is true.
func condition(object map[string]any, kind string) bool {
	for _, c := range objects(object, "status", "conditions") {
		if text(c, "type") == kind {
			return text(c, "status") == "True"
		}
	}
	return false
}

// field, text and objects read what may be missing or of another type, without copying it.
func field(object map[string]any, path ...string) any {
	value, ok, err := unstructured.NestedFieldNoCopy(object, path...)
	if !ok || err != nil {
		return nil
	}
	return value
}

func text(object map[string]any, path ...string) string {
	s, _ := field(object, path...).(string)
	return s
}

func objects(object map[string]any, path ...string) []map[string]any {
	list, _ := field(object, path...).([]any)
	found := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if o, ok := item.(map[string]any); ok {
			found = append(found, o)
		}
	}
	return found
}

// trim drops what is not read: schemas of custom resources take megabytes. It is an informer's transform.
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
