package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// What upstream does and no preset: docs/policies.md lists it, and the random histories keep away from it.

// TestUpstreamTakesNothingForAnEmptyDocument: a fetch whose answer broke off after its headers has brought a document that lists nothing,
// and is not repeated. Here it has failed.
func TestUpstreamTakesNothingForAnEmptyDocument(t *testing.T) {
	for name, nothing := range map[string]failure{
		"empty": func(r *http.Request) *http.Response { return reply(r, http.StatusOK, "application/json", "") },
		"broken off": func(r *http.Request) *http.Response {
			whole := document(r, documentOf(pool, false)[1])
			whole.Body = &breakingBody{from: whole.Body}
			return whole
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer func() { cancel(); synctest.Wait() }()
				w := &world{peers: map[string]*worldPeer{address(0): {id: "a", serves: documentOf(pool, false), down: [2]failure{nothing, nothing}}}}
				local, to, client, objects := newProcess(w.local), &way{world: w, fetches: map[string]int{}}, newClient(), newObjects()
				if _, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Create(ctx, identityLease("a", "1"), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				theirs := startUpstream(ctx, t, "self", local, &transport.Config{WrapTransport: func(http.RoundTripper) http.RoundTripper { return to }},
					map[string]string{"a": address(0)}, client, objects)
				ours := startSubject(ctx, t, proxy.Upstream137(), local, &way{world: w, fetches: map[string]int{}}, map[string]string{"a": address(0)}, client, objects)
				theirs.wait()
				time.Sleep(time.Second)
				if p := ours.store.Table().Peers(); len(p) != 1 || p[0].Failed[0] == "" || p[0].Failed[1] == "" {
					t.Errorf("%+v, want both fetches failed", p)
				}
				w.change(func() { w.peers[address(0)].down = [2]failure{} })
				time.Sleep(24 * time.Hour)
				if fetched := to.fetched(); len(fetched) != 2 {
					t.Errorf("fetched %v, want two documents", fetched)
				} else {
					for what, times := range fetched {
						if times != 1 {
							t.Errorf("%s: %d times, want once: if it is tried again, the presets are right as they are", what, times)
						}
					}
				}
				if x := plain(pool[0]).send(behindFilters(theirs.handler)); x.body != "local" {
					t.Errorf("upstream answers %s, want what the local server says who does not serve it", x)
				}
				if x := plain(pool[0]).send(behindFilters(ours.handlers[0])); x.body != "peer a" {
					t.Errorf("the preset answers %s, want the peer's answer", x)
				}
			})
		})
	}
}

// TestUpstreamKeepsTheGroupOfADeletedDefinition: when the last custom resource of a group is gone, the local server's document is made anew
// and the merged one is not told; it is only told that peers' documents are to be filtered again, if there are any.
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
