package proxy_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/util/peerproxy"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
)

// upstream is the real Mixed Version Proxy of k8s.io/apiserver in a world.
type upstream struct {
	handler   http.Handler
	wait      func() // until it has synced
	endpoints *endpoints
}

// endpoints replaces the endpoint leases, which upstream keeps in etcd.
type endpoints struct {
	mu        sync.Mutex
	addresses map[string]string
}

func (e *endpoints) set(id, address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.addresses[id] = address
}

func (e *endpoints) GetEndpoint(id string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.addresses[id], nil
}
func (*endpoints) UpdateLease(string, string, []corev1.EndpointPort) error { return nil }
func (*endpoints) RemoveLease(string) error                                { return nil }
func (*endpoints) Destroy()                                                {}
func (*endpoints) StopReconciling()                                        {}

const identitySelector = "apiserver.kubernetes.io/identity=kube-apiserver"

// resync is how often kube-apiserver's informers of definitions and APIServices repeat all objects.
// At each repetition, upstream looks whether graces have ended (apiextensions-apiserver and
// kube-aggregator, pkg/apiserver/apiserver.go).
const resync = 5 * time.Minute

// startUpstream starts upstream's proxy in front of a process of the local server, as
// kube-apiserver does (pkg/controlplane/apiserver). to is the transport to the peers. The caller
// must wait for it with wait.
func startUpstream(ctx context.Context, t testing.TB, self string, local *process, to *transport.Config, known map[string]string,
	client kubernetes.Interface, objects dynamic.Interface) *upstream {
	t.Helper()
	u := &upstream{endpoints: &endpoints{addresses: maps.Clone(known)}}
	leases := informers.NewSharedInformerFactory(client, 0)
	h, err := peerproxy.NewPeerProxyHandler(self, identitySelector, leases.Coordination().V1().Leases(), u.endpoints, scheme.Codecs.WithoutConversion(),
		&rest.Config{Host: "https://local", Transport: local}, to)
	if err != nil {
		t.Fatal(err)
	}
	extensions := dynamicinformer.NewDynamicSharedInformerFactory(objects, resync)
	if err := errors.Join(
		h.RegisterCRDInformerHandlers(extensions.ForResource(crdResource).Informer(), listedVersions),
		h.RegisterAPIServiceInformerHandlers(extensions.ForResource(serviceResource).Informer(), servedVersion),
	); err != nil {
		t.Fatal(err)
	}
	merged := aggregated.NewPeerAggregatedDiscoveryHandler(self, local.groups, h, "apis")
	h.RegisterCacheInvalidationCallback(merged.InvalidateCache)

	leases.Start(ctx.Done())
	extensions.Start(ctx.Done())
	if err := h.RunLocalDiscoveryCacheSync(ctx.Done()); err != nil {
		t.Fatal(err)
	}
	go h.RunPeerDiscoveryCacheSync(ctx, 1)
	go h.RunPeerDiscoveryActiveGVTracker(ctx)
	go h.RunPeerDiscoveryRefilter(ctx)
	u.handler = h.WrapHandler(local.handler(merged))
	u.wait = func() {
		t.Helper()
		if err := h.WaitForCacheSync(ctx.Done()); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

var (
	crdResource     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	serviceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// newObjects is a client of an API without definitions and APIServices.
func newObjects() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{crdResource: "CustomResourceDefinitionList", serviceResource: "APIServiceList"})
}

// newClient returns a client of an API without leases, as fake.NewSimpleClientset does. It does not
// use fake.NewClientset, because its managed fields would take most of a history's time.
func newClient() *fake.Clientset {
	client, leases := &fake.Clientset{}, clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	client.AddReactor("*", "*", clienttesting.ObjectReaction(leases))
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := leases.Watch(action.GetResource(), action.GetNamespace())
		return true, w, err
	})
	return client
}

// tick is how long a fetch, or the inspection of one object, takes. Upstream ends a grace when more
// than its length has passed, but it looks when exactly its length has passed. So upstream sees the
// end of a grace only because the inspection takes time. With a clock that stands still meanwhile,
// it would never see it.
const tick = time.Microsecond

// listedVersions and servedVersion replace the functions that kube-apiserver passes to upstream's
// proxy (crdExtractor and apiServiceExtractor in pkg/controlplane/apiserver/aggregator.go). They
// read objects without a Go type.
func listedVersions(object any) []schema.GroupVersion {
	time.Sleep(tick)
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	var list []schema.GroupVersion
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok {
			list = append(list, schema.GroupVersion{Group: group, Version: m["name"].(string)})
		}
	}
	return list
}

func servedVersion(object any) []schema.GroupVersion {
	time.Sleep(tick)
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if service, _, _ := unstructured.NestedMap(u.Object, "spec", "service"); service == nil {
		return nil
	}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	version, _, _ := unstructured.NestedString(u.Object, "spec", "version")
	return []schema.GroupVersion{{Group: group, Version: version}}
}

// identityLease is the identity lease that a kube-apiserver writes.
func identityLease(id, holder string) *coordinationv1.Lease {
	seconds := int32(3600)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
	}
}

// crd is a CustomResourceDefinition. It lists the versions in unserved but does not serve them. If
// accepted is false, its names were refused.
func crd(group, resource string, versions []string, unserved []string, accepted bool) *unstructured.Unstructured {
	var list []any
	for _, v := range versions {
		list = append(list, map[string]any{"name": v, "served": !slices.Contains(unserved, v)})
	}
	status := map[bool]string{true: "True", false: "False"}[accepted]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": resource + "." + group},
		"spec":     map[string]any{"group": group, "names": map[string]any{"plural": resource}, "versions": list},
		"status": map[string]any{
			"acceptedNames": map[string]any{"plural": resource},
			"conditions":    []any{map[string]any{"type": "Established", "status": status}, map[string]any{"type": "NamesAccepted", "status": status}},
		},
	}}
}

// apiService is an APIService. It has a Service if it is remote; without a Service it is the
// APIService of a built-in group version.
func apiService(group, version string, remote bool) *unstructured.Unstructured {
	spec := map[string]any{"group": group, "version": version}
	if remote {
		spec["service"] = map[string]any{"name": "server", "namespace": "default"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + "." + group}, "spec": spec,
	}}
}

// Upstream logs every retry. The log is switched off, because the test sees upstream's actions in
// its answers. The default error handlers remember when they were last called. They would wait for
// the end of a time that belongs to another synctest bubble.
func init() {
	klog.SetLogger(klog.Logger{})
	utilruntime.ErrorHandlers = nil
}
