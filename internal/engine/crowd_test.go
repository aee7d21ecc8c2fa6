package engine

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// A crowd asks for what only other servers serve, and only for collections that it can list, watch
// and create objects in.
func TestCrossing(t *testing.T) {
	resource := func(group, name string, namespaced bool, verbs ...string) history.Resource {
		return history.Resource{GVR: history.GVR{Group: group, Version: "v1", Resource: name}, Namespaced: namespaced, Verbs: verbs}
	}
	all := []string{"create", "get", "list", "watch"}
	pods, rules, claims := resource("", "pods", true, all...), resource("x.io", "rules", false, all...), resource("x.io", "claims", true, all...)
	served := map[string]history.Document{
		"a": {Resources: []history.Resource{pods, rules, claims, resource("x.io", "reviews", false, "create"), resource("x.io", "frozen", false, "list", "watch")}},
		"b": {Resources: []history.Resource{pods}},
		"c": {Resources: []history.Resource{rules, resource("", "secrets", true, all...)}},
	}
	for server, want := range map[string][]string{
		"a": {"/api/v1/namespaces/skewproof/secrets"},
		"b": {"/api/v1/namespaces/skewproof/secrets", "/apis/x.io/v1/namespaces/skewproof/claims", "/apis/x.io/v1/rules"},
	} {
		if got := crossing(served, server); !slices.Equal(got, want) {
			t.Errorf("at %s: %q, want %q", server, got, want)
		}
	}
	if got := crossing(map[string]history.Document{"a": served["a"], "b": served["a"]}, "b"); len(got) > 0 {
		t.Errorf("of equal servers: %q", got)
	}
}
