package proxy

import (
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// A resource has the kind of its own group version. The kind of a response in another group version
// (as of scale subresources) is not the kind of the resource.
func TestLackingKnowsKindsOfTheVersion(t *testing.T) {
	e := &exchange{table: table(Reference(), localServes(jobs))}
	for name, c := range map[string]struct {
		kind *metav1.GroupVersionKind
		want string
	}{
		"no kind":                {nil, ""},
		"without a version":      {&metav1.GroupVersionKind{Kind: "Gadget"}, "Gadget"},
		"of this version":        {&metav1.GroupVersionKind{Group: "new.k8s.io", Version: "v1", Kind: "Gadget"}, "Gadget"},
		"of this group":          {&metav1.GroupVersionKind{Group: "new.k8s.io", Kind: "Gadget"}, "Gadget"},
		"of the version only":    {&metav1.GroupVersionKind{Version: "v1", Kind: "Gadget"}, "Gadget"},
		"of another version":     {&metav1.GroupVersionKind{Group: "new.k8s.io", Version: "v2", Kind: "Gadget"}, ""},
		"of another group":       {&metav1.GroupVersionKind{Group: "old.k8s.io", Version: "v1", Kind: "Gadget"}, ""},
		"of only another group":  {&metav1.GroupVersionKind{Group: "old.k8s.io", Kind: "Gadget"}, ""},
		"of a version of no one": {&metav1.GroupVersionKind{Version: "v2", Kind: "Gadget"}, ""},
	} {
		v := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Resources: []apidiscoveryv2.APIResourceDiscovery{{Resource: "gadgets", ResponseKind: c.kind}}}
		missing := e.lacking(RootGroups, "new.k8s.io", v)
		if kind, ok := missing[Resource{Group: "new.k8s.io", Version: "v1", Resource: "gadgets"}]; !ok || kind != c.want || len(missing) != 1 {
			t.Errorf("%s: %v, want the kind %q", name, missing, c.want)
		}
	}
}

// The kind of a resource, and of its lists, is found in its own group version only.
func TestHasKind(t *testing.T) {
	missing := lacking{{Group: "g", Version: "v1", Resource: "gadgets"}: "Gadget", {Group: "g", Version: "v1", Resource: "gadgets", Subresource: "scale"}: ""}
	for k, want := range map[discovery.GroupVersionKind]bool{
		{Group: "g", Version: "v1", Kind: "Gadget"}: true, {Group: "g", Version: "v1", Kind: "GadgetList"}: true,
		{Group: "h", Version: "v1", Kind: "Gadget"}: false, {Group: "g", Version: "v2", Kind: "Gadget"}: false,
		{Group: "h", Version: "v1", Kind: "GadgetList"}: false, {Group: "g", Version: "v2", Kind: "GadgetList"}: false,
		{Group: "g", Version: "v1", Kind: "Job"}: false, {Group: "g", Version: "v1", Kind: ""}: false, {Group: "g", Version: "v1", Kind: "List"}: false,
	} {
		if got := missing.hasKind(k); got != want {
			t.Errorf("%v: %t, want %t", k, got, want)
		}
	}
}
