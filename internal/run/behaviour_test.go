package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// What somebody else than the run created by a request is what controllers created.
func TestWhatControllersCreated(t *testing.T) {
	object := func(group, version, resource, namespace, name string) object {
		return object{history.GVR{Group: group, Version: version, Resource: resource}, namespace, name}
	}
	added := sets.New(
		object("g", "v2", "bundles", "", "of:0123456789abcdef"), object("g", "v2", "bundles", "", "of:fedcba9876543210"),
		object("", "v1", "configmaps", "a", "ca"), object("", "v1", "configmaps", "b", "ca"),
		object("", "v1", "leases", "a", "by-nobody"), object("", "v1", "secrets", "a", "of-the-run"), object("", "v1", "pods", "a", "refused"),
	)
	request := func(group, resource, namespace, user string, status int, own bool) history.Request {
		return history.Request{GVR: history.GVR{Group: group, Version: "v1", Resource: resource}, Namespace: namespace, User: user, Status: status, Own: own}
	}
	got := created(added, []history.Request{
		request("g", "bundles", "", "publisher", 201, false), request("g", "bundles", "", "publisher", 200, false),
		request("", "configmaps", "a", "z", 201, false), request("", "configmaps", "a", "y", 201, false),
		request("", "secrets", "a", "admin", 201, true), request("", "pods", "a", "x", 403, false),
	})
	want := []recorded.Created{
		{GVR: history.GVR{Group: "g", Version: "v2", Resource: "bundles"}, By: []string{"publisher"}, Names: []string{"of:*"}},
		{GVR: history.GVR{Version: "v1", Resource: "configmaps"}, By: []string{"y", "z"}, Names: []string{"a/ca"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
