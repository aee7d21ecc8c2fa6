package proxy_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// lists is a discovery document: one group in one version, with resources that can be listed.
func lists(group, version string, resources ...string) discovery.Groups {
	v := apidiscoveryv2.APIVersionDiscovery{Version: version}
	for _, r := range resources {
		v.Resources = append(v.Resources, apidiscoveryv2.APIResourceDiscovery{Resource: r, Scope: apidiscoveryv2.ScopeCluster, Verbs: []string{"list"}})
	}
	return discovery.Groups{{ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: []apidiscoveryv2.APIVersionDiscovery{v}}}
}

// A handler is put in front of the program's own server. It forwards requests that only a peer can
// serve. Usually package peers fills the store from leases and discovery; this example fills the
// store itself.
func ExampleNew() {
	own := http.NewServeMux()
	own.HandleFunc("/apis/example.com/v1/jobs", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "jobs of this server") })
	peer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s of the peer, for %s", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], r.Header.Get("X-Remote-User"))
	}))
	defer peer.Close()

	store, now := proxy.NewStore(proxy.Reference(), "this-server"), time.Now()
	store.Observe(
		proxy.LocalFetched{At: now, Roots: [2]discovery.Groups{proxy.RootGroups: lists("example.com", "v1", "jobs")}},
		proxy.PeerAppeared{ID: "peer", Incarnation: "1"},
		proxy.PeerAddress{ID: "peer", Address: peer.Listener.Addr().String()},
		proxy.Fetched{At: now, Results: []proxy.FetchResult{{ID: "peer", Incarnation: "1", Roots: [2]proxy.RootResult{
			proxy.RootGroups: {Groups: lists("example.com", "v1", "jobs", "gadgets")},
		}}}},
		proxy.Synced{},
	)
	handler, err := proxy.New(proxy.Config{
		Store: store,
		Local: own,
		// In a cluster: an http.Transport that trusts the authorities of peers and has a
		// front-proxy client certificate.
		Transport: peer.Client().Transport,
	})
	if err != nil {
		log.Fatal(err)
	}

	for _, resource := range []string{"jobs", "gadgets", "nothing"} {
		r := httptest.NewRequest("GET", "/apis/example.com/v1/"+resource, nil)
		// In a cluster, authentication runs before the handler and puts the user into the context, and
		// authorization does, too.
		r = r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: "alice"}))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 jobs of this server
	// 200 gadgets of the peer, for alice
	// 404 404 page not found
}

// The example drives a table step by step. A table is a value, and needs no clock, network or
// goroutine.
func ExampleTable() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	gadgets := proxy.Request{Kind: proxy.KindResource, Resource: proxy.Resource{Group: "example.com", Version: "v1", Resource: "gadgets"}}
	first := func(int) int { return 0 }
	table := proxy.NewTable(proxy.Reference(), "this-server")
	for _, learnt := range []struct {
		what  string
		event proxy.Event
	}{
		{"this server lists jobs", proxy.LocalFetched{At: now, Roots: [2]discovery.Groups{proxy.RootGroups: lists("example.com", "v1", "jobs")}}},
		{"everything at the start is known", proxy.Synced{}},
		{"a peer appears", proxy.PeerAppeared{ID: "peer", Incarnation: "1"}},
		{"it lists gadgets", proxy.Fetched{At: now, Results: []proxy.FetchResult{{ID: "peer", Incarnation: "1", Roots: [2]proxy.RootResult{
			proxy.RootGroups: {Groups: lists("example.com", "v1", "gadgets")},
		}}}}},
		{"its address is known", proxy.PeerAddress{ID: "peer", Address: "192.0.2.1:6443"}},
	} {
		table = table.Observe(learnt.event)
		decision := table.Decide(gadgets, nil, now, first)
		fmt.Printf("%s: %s (%s)\n", learnt.what, decision.Action, decision.Reason)
	}
	failed := []proxy.Attempt{{Peer: "peer", Outcome: proxy.NotDelivered, Trouble: "it could not be reached"}}
	decision := table.Decide(gadgets, failed, now, first)
	fmt.Printf("the attempt fails: %s, because %s: %s\n", decision.Action, decision.Peers[0].ID, decision.Peers[0].Trouble)
	// Output:
	// this server lists jobs: unavailable (unsynced)
	// everything at the start is known: not-found (nobody)
	// a peer appears: unavailable (unknown)
	// it lists gadgets: unavailable (unresolved)
	// its address is known: forward (capable)
	// the attempt fails: unavailable, because peer: it could not be reached
}
