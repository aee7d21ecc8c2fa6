package peers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// document makes a discovery document from "group/version resource…" lines. For the core group, a
// line is "v1 …".
func document(lines ...string) discovery.Groups {
	var groups discovery.Groups
	for _, line := range lines {
		words := strings.Fields(line)
		gv, err := schema.ParseGroupVersion(words[0])
		if err != nil {
			panic(err)
		}
		v := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, r := range words[1:] {
			v.Resources = append(v.Resources, apidiscoveryv2.APIResourceDiscovery{Resource: r, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get", "list"}})
		}
		if n := len(groups); n > 0 && groups[n-1].Name == gv.Group {
			groups[n-1].Versions = append(groups[n-1].Versions, v)
			continue
		}
		groups = append(groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group}, Versions: []apidiscoveryv2.APIVersionDiscovery{v}})
	}
	return groups
}

// definition is a CustomResourceDefinition. A version is "v1", or "v1-" if it is not served.
// conditions are the conditions that are true.
func definition(group, plural string, versions []string, conditions ...string) *unstructured.Unstructured {
	var list, status []any
	for _, v := range versions {
		name, off := strings.CutSuffix(v, "-")
		list = append(list, map[string]any{"name": name, "served": !off, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}})
	}
	for _, c := range conditions {
		status = append(status, map[string]any{"type": c, "status": "True"})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec":     map[string]any{"group": group, "names": map[string]any{"plural": plural}, "versions": list},
		"status":   map[string]any{"conditions": status},
	}}
}

// service is an APIService, with a Service if it is aggregated.
func service(group, version string, aggregated bool) *unstructured.Unstructured {
	spec := map[string]any{"group": group, "version": version}
	if aggregated {
		spec["service"] = map[string]any{"namespace": "default", "name": "backend"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": version + "." + group}, "spec": spec,
	}}
}

func TestExtensionsRead(t *testing.T) {
	null := service("null.example", "v1", false)
	null.Object["spec"].(map[string]any)["service"] = nil
	denied := definition("denied.example", "things", []string{"v1"})
	denied.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": "False"}, map[string]any{"type": "Established", "status": "False"},
	}}
	odd := []*unstructured.Unstructured{
		{Object: map[string]any{}}, {Object: nil}, {},
		{Object: map[string]any{"spec": "text"}}, {Object: map[string]any{"metadata": map[string]any{"creationTimestamp": "yesterday"}}},
		{Object: map[string]any{"spec": map[string]any{"group": "odd.example", "names": "text", "versions": "text"}}},
		{Object: map[string]any{"spec": map[string]any{"group": "odd.example", "names": map[string]any{"plural": "things"},
			"versions": []any{"text", nil, map[string]any{"served": true}, map[string]any{"name": 7, "served": true}, map[string]any{"name": "v2", "served": "true"}}},
			"status": map[string]any{"conditions": []any{"text", nil, map[string]any{"type": 7}, map[string]any{"type": "Established", "status": "True"}}}}},
	}
	created := time.Date(2026, time.November, 3, 4, 5, 6, 0, time.UTC)
	widgets := definition("example.com", "widgets", []string{"v1", "v2-", "v1beta1"}, "NamesAccepted", "Established")
	widgets.SetCreationTimestamp(metav1.NewTime(created))
	denied.SetCreationTimestamp(metav1.NewTime(created))
	got := extensions(append([]*unstructured.Unstructured{
		widgets,
		definition("accepted.example", "things", []string{"v1"}, "NamesAccepted"),
		definition("new.example", "things", []string{"v1"}),
		definition("broken.example", "things", []string{"v1"}, "Established"), // its names are refused now, but it is still served
		denied,
	}, odd...), append([]*unstructured.Unstructured{service("metrics.example", "v1", true), service("apps", "v1", false), null}, odd...))
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	want := proxy.Extensions{
		CustomResources: []schema.GroupVersionResource{
			gvr("accepted.example", "v1", "things"), gvr("broken.example", "v1", "things"),
			gvr("example.com", "v1", "widgets"), gvr("example.com", "v1beta1", "widgets"),
		},
		Created: map[schema.GroupVersionResource]time.Time{gvr("example.com", "v1", "widgets"): created, gvr("example.com", "v1beta1", "widgets"): created},
		Unserved: []schema.GroupVersionResource{
			gvr("denied.example", "v1", "things"), gvr("example.com", "v2", "widgets"), gvr("new.example", "v1", "things"), gvr("odd.example", "v2", "things"),
		},
		Aggregated: []schema.GroupVersion{{Group: "metrics.example", Version: "v1"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestTrimKeepsWhatIsRead(t *testing.T) {
	full := definition("example.com", "widgets", []string{"v1", "v2-"}, "Established")
	full.SetCreationTimestamp(metav1.Now())
	want := extensions([]*unstructured.Unstructured{full.DeepCopy()}, nil)
	o, err := trim(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, extensions([]*unstructured.Unstructured{o.(*unstructured.Unstructured)}, nil)); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(fmt.Sprint(o), "openAPIV3Schema") {
		t.Error("the schema is still there")
	}
	for _, odd := range []any{nil, "text", &unstructured.Unstructured{}} {
		if _, err := trim(odd); err != nil {
			t.Errorf("trim(%v): %v", odd, err)
		}
	}
}

// extended is a server with a peer. Its extensions come from real informers on a fake cluster.
type extended struct {
	t      *testing.T
	store  *proxy.Store
	client *dynamicfake.FakeDynamicClient
}

// withExtensions runs a test under both policies that filter.
func withExtensions(t *testing.T, test func(*testing.T, proxy.Policy, *extended)) {
	for _, policy := range []proxy.Policy{proxy.Upstream136(), proxy.Reference()} {
		t.Run(policy.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &extended{t: t, store: proxy.NewStore(policy, "self"), client: newDynamic()}
				x.store.Observe(proxy.PeerAppeared{ID: "p", Incarnation: "i"}, proxy.PeerAddress{ID: "p", Address: "192.0.2.1:6443"},
					proxy.LocalFetched{Version: "v1.36.3", Roots: [2]discovery.Groups{document("v1 pods"), document("apps/v1 deployments")}, At: time.Now()},
					proxy.Synced{})
				x.fetched("apps/v1 deployments")
				sources, err := New(Config{Store: x.store, Dynamic: x.client, PeerTransport: roundTrip(nil)})
				if err != nil {
					t.Fatal(err)
				}
				defer start(t, sources.Run)()
				time.Sleep(time.Second) // informers wait in steps of 100 ms of synctest's time
				synctest.Wait()
				test(t, policy, x)
			})
		})
	}
}

// fetched observes a new document of the peer.
func (x *extended) fetched(groups ...string) {
	x.store.Observe(proxy.Fetched{At: time.Now(), Results: []proxy.FetchResult{{ID: "p", Incarnation: "i", Version: "v1.37.1",
		Roots: [2]proxy.RootResult{{Groups: document("v1 pods")}, {Groups: document(groups...)}}}}})
}

func (x *extended) put(o *unstructured.Unstructured) {
	x.t.Helper()
	resource := x.client.Resource(map[string]schema.GroupVersionResource{"CustomResourceDefinition": customResourceDefinitions, "APIService": apiServices}[o.GetKind()])
	if _, err := resource.Update(x.t.Context(), o, metav1.UpdateOptions{}); err != nil {
		if _, err := resource.Create(x.t.Context(), o, metav1.CreateOptions{}); err != nil {
			x.t.Fatal(err)
		}
	}
	synctest.Wait()
}

func (x *extended) remove(gvr schema.GroupVersionResource, name string) {
	x.t.Helper()
	if err := x.client.Resource(gvr).Delete(x.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		x.t.Fatal(err)
	}
	synctest.Wait()
}

// expect checks the decision about a request, and whether discovery takes the resource from the
// peer.
func (x *extended) expect(step, gv, resource string, want proxy.Action) {
	x.t.Helper()
	parsed, _ := schema.ParseGroupVersion(gv)
	d := decide(x.store, gv, resource)
	if d.Action != want {
		x.t.Fatalf("%s: %s %s: action %v (%s), want %v", step, gv, resource, d.Action, d.Reason, want)
	}
	listed := false
	for _, s := range x.store.Table().Sources(proxy.RootGroups) {
		listed = listed || !s.Local && discovery.NewIndex(s.Groups).Resource(parsed.Group, parsed.Version, resource, "")
	}
	if listed != (want == proxy.Forward) {
		x.t.Fatalf("%s: %s %s: taken from the peer into discovery: %v", step, gv, resource, listed)
	}
}

// The peer's document lists the
// custom resource all the time and nothing else in its group version. kube-apiservers decide by
// group version. A server that has a built-in resource in v1 serves no custom resource in v1, and
// its discovery lists none (the director in k8s.io/apiserver, pkg/server/handler.go, and
// BuiltinSource before CRDSource in pkg/endpoints/discovery/aggregated). So if a document has
// gadgets, for which there is no definition, and widgets in one group version, its server has both
// built in. They outlive the definition.
func TestCustomResourceLifeCycle(t *testing.T) {
	late := []string{"apps/v1 deployments", "example.com/v1 widgets", "example.com/v2 widgets"}
	without := []string{"apps/v1 deployments", "example.com/v1 gadgets", "example.com/v2 widgets"}
	both := []string{"apps/v1 deployments", "example.com/v1 widgets gadgets", "example.com/v2 widgets"}
	withExtensions(t, func(t *testing.T, policy proxy.Policy, x *extended) {
		exact := policy.Knowledge.Extensions == proxy.ExtensionsExact
		beside := proxy.NotFound // gadgets are built in at the peer; upstream hides them together with the group version
		if exact {
			beside = proxy.Forward
		}
		x.expect("nothing is known of it", "example.com/v1", "widgets", proxy.NotFound)

		x.put(definition("example.com", "widgets", []string{"v1", "v2"}, "NamesAccepted", "Established"))
		x.fetched(late...)
		for _, v := range []string{"example.com/v1", "example.com/v2"} {
			if d := decide(x.store, v, "widgets"); d.Action == proxy.Forward {
				t.Fatalf("created: %s went to the peer", v)
			}
		}
		x.fetched(without...)
		x.expect("created: the built-in resource beside it", "example.com/v1", "gadgets", beside)

		x.put(definition("example.com", "widgets", []string{"v1"}, "NamesAccepted", "Established"))
		x.fetched(late...)
		x.expect("version dropped", "example.com/v2", "widgets", proxy.NotFound)

		x.remove(customResourceDefinitions, "widgets.example.com")
		x.fetched(late...)
		x.expect("deleted", "example.com/v1", "widgets", proxy.NotFound)
		x.fetched(both...)
		x.expect("deleted, but built in at the peer", "example.com/v1", "widgets", beside)
		x.expect("deleted: the built-in resource beside it", "example.com/v1", "gadgets", beside)
		x.fetched(late...)
		x.expect("deleted, and not built in", "example.com/v1", "widgets", proxy.NotFound)

		time.Sleep(11 * time.Minute) // five minutes of grace, and upstream may look five minutes later
		synctest.Wait()
		x.fetched(late...)
		x.expect("after the grace a peer that lists it means it", "example.com/v1", "widgets", proxy.Forward)
		x.expect("after the grace", "example.com/v2", "widgets", proxy.Forward)
		x.fetched(both...)
		x.expect("after the grace", "example.com/v1", "gadgets", proxy.Forward)
	})
}

func decide(store *proxy.Store, gv, resource string) proxy.Decision {
	parsed, _ := schema.ParseGroupVersion(gv)
	return store.Table().Decide(proxy.Request{Kind: proxy.KindResource,
		Resource: proxy.Resource{Group: parsed.Group, Version: parsed.Version, Resource: resource}}, nil, time.Now(), func(int) int { return 0 })
}

// No server serves a version that is switched off, or a definition with refused names. Under the
// reference they hide nothing: a peer that serves such a resource has it built in. Upstream counts
// every listed version.
func TestUnservedDefinitionsHideNothing(t *testing.T) {
	withExtensions(t, func(t *testing.T, policy proxy.Policy, x *extended) {
		want := proxy.NotFound
		if policy.Knowledge.Extensions == proxy.ExtensionsExact {
			want = proxy.Forward
		}
		x.put(definition("example.com", "widgets", []string{"v1", "v2-"}, "Established"))
		x.put(definition("refused.example", "widgets", []string{"v1"}))
		x.fetched("example.com/v2 widgets", "refused.example/v1 widgets")
		x.expect("never served here", "example.com/v2", "widgets", want)
		x.expect("refused", "refused.example/v1", "widgets", want)
	})
}

func TestAggregatedAPILifeCycle(t *testing.T) {
	withExtensions(t, func(t *testing.T, _ proxy.Policy, x *extended) {
		late := []string{"metrics.example/v1 nodes", "metrics.example/v2 nodes"}
		x.put(service("metrics.example", "v1", true))
		x.fetched(late...)
		if d := decide(x.store, "metrics.example/v1", "nodes"); d.Action == proxy.Forward {
			t.Fatal("created: went to the peer")
		}
		x.expect("another version", "metrics.example/v2", "nodes", proxy.Forward)

		x.put(service("metrics.example", "v2", false))
		x.expect("an APIService without a Service hides nothing", "metrics.example/v2", "nodes", proxy.Forward)

		x.put(service("metrics.example", "v1", false))
		x.fetched(late...)
		x.expect("it names no Service any more", "metrics.example/v1", "nodes", proxy.NotFound)

		x.remove(apiServices, "v1.metrics.example")
		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		x.fetched(late...)
		x.expect("after the grace", "metrics.example/v1", "nodes", proxy.Forward)
	})
}

// Many definitions at the start are one event.
func TestExtensionsAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range 300 {
			objects = append(objects, definition("example.com", fmt.Sprint("things", i), []string{"v1"}, "Established"))
		}
		client := newDynamic(objects...)
		w, err := watchExtensions(proxy.NewStore(proxy.Reference(), "self"), client, func(proxy.Extensions) {})
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		look := w.look
		w.look = func() { looks++; look() }
		synced, looksBefore := make(chan struct{}), 0
		end := start(t, func(ctx context.Context) error {
			return w.run(ctx, func(error) {}, func() { looksBefore = looks; close(synced) })
		})
		<-synced
		if looksBefore == 0 {
			t.Error("synced before anything was looked at")
		}
		end()
		if looks > 2 {
			t.Fatalf("%d reads of 300 definitions", looks)
		}
	})
}
