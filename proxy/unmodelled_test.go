package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// This file shows behaviour of upstream that no preset of this package has. docs/policies.md lists
// these differences, and the random histories avoid them.

// TestUpstreamKeepsTheGroupOfADeletedDefinition: when the last custom resource of a group is
// deleted, the local server's document is made again, but the merged document is not invalidated.
// Upstream only filters the peers' documents again, if there are any.
func TestUpstreamKeepsTheGroupOfADeletedDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		local := newProcess(documentOf(pool[:4], false))
		theirs := startUpstream(ctx, t, "self", local, &transport.Config{}, nil, newClient(), newObjects())
		theirs.wait()
		lists := func(accept string) bool {
			q := &request{method: http.MethodGet, target: "/apis", user: alice, header: http.Header{"Accept": {accept}}}
			return strings.Contains(q.send(behindFilters(theirs.handler)).body, `"example.com"`)
		}
		local.define(map[schema.GroupVersion][]string{{Group: "example.com", Version: "v1"}: {"widgets"}})
		if !lists(discovery.AcceptV2) {
			t.Fatal("a custom resource is not listed")
		}
		local.groups.WithSource(aggregated.CRDSource).RemoveGroup("example.com") // as apiextensions-apiserver does, customresource_discovery_controller.go
		time.Sleep(24 * time.Hour)
		if lists(discovery.AcceptV2NoPeer) {
			t.Error("the local server still lists it")
		}
		if !lists(discovery.AcceptV2) {
			t.Error("the merged document does not list it any more: then the presets are right as they are")
		}
	})
}
