package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// What somebody else than the run created by a request is what controllers created.
func TestWhatControllersCreated(t *testing.T) {
	bundles := schema.GroupResource{Group: "g", Resource: "bundles"}
	added := sets.New(
		object{"g", "bundles", "", "of:0123456789abcdef"}, object{"g", "bundles", "", "of:fedcba9876543210"},
		object{"", "configmaps", "a", "ca"}, object{"", "configmaps", "b", "ca"},
		object{"", "leases", "a", "by-nobody"}, object{"", "secrets", "a", "of-the-run"}, object{"", "pods", "a", "refused"},
	)
	request := func(group, resource, namespace, user string, status int, own bool) history.Request {
		return history.Request{GVR: history.GVR{Group: group, Version: "v1", Resource: resource}, Namespace: namespace, User: user, Status: status, Own: own}
	}
	got := created(added, map[schema.GroupResource]string{bundles: "v2", {Resource: "configmaps"}: "v1"}, []history.Request{
		request("g", "bundles", "", "publisher", 201, false), request("g", "bundles", "", "publisher", 200, false),
		request("", "configmaps", "a", "z", 201, false), request("", "configmaps", "a", "y", 201, false),
		request("", "secrets", "a", "admin", 201, true), request("", "pods", "a", "x", 403, false),
	})
	want := []recorded.Created{
		{Group: "g", Version: "v2", Resource: "bundles", By: []string{"publisher"}, Names: []string{"of:*"}},
		{Version: "v1", Resource: "configmaps", By: []string{"y", "z"}, Names: []string{"a/ca"}},
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("sorted", func(all []recorded.Created) map[string]recorded.Created {
		by := map[string]recorded.Created{}
		for _, c := range all {
			by[c.Resource] = c
		}
		return by
	})); diff != "" {
		t.Error(diff)
	}
}
