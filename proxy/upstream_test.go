package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/peerproxy"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// world is what both implementations meet: a local server and peers, without a network.
type world struct {
	mu    sync.Mutex
	local [2]discovery.Groups
	peers map[string]*worldPeer // by address
}

type worldPeer struct {
	id     string
	serves [2]discovery.Groups
	down   [2]bool // fetches of that document fail
	cut    bool    // nothing gets through
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

var roots = []string{"/api", "/apis"}

// RoundTrip is the way to every peer: discovery is answered, everything else by the peer's name.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.peers[r.URL.Host]
	if !ok || p.cut {
		return nil, errors.New("dial tcp " + r.URL.Host + ": connect: connection refused")
	}
	if i := slices.Index(roots, r.URL.Path); i >= 0 {
		if p.down[i] {
			return answer(r, http.StatusInternalServerError, "text/plain", []byte("down")), nil
		}
		return document(r, p.serves[i]), nil
	}
	if r.URL.Path == "/version" {
		return answer(r, http.StatusOK, "application/json", []byte(`{"gitVersion":"v1.37.1"}`)), nil
	}
	return answer(r, http.StatusOK, "text/plain", []byte("peer "+p.id)), nil
}

// localServer is the way to the local server's own discovery.
type localServer struct{ *world }

func (l localServer) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(roots, r.URL.Path); i >= 0 {
		return document(r, l.local[i]), nil
	}
	return answer(r, http.StatusOK, "application/json", []byte(`{"gitVersion":"v1.36.3"}`)), nil
}

func document(r *http.Request, groups discovery.Groups) *http.Response {
	list := &apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}, Items: groups}
	var body bytes.Buffer
	if err := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}).Encode(list, &body); err != nil {
		return answer(r, http.StatusInternalServerError, "text/plain", []byte(err.Error()))
	}
	return answer(r, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", body.Bytes())
}

func answer(r *http.Request, code int, contentType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// upstream is the real Mixed Version Proxy of k8s.io/apiserver in a world.
type upstream struct {
	handler   http.Handler
	merged    http.Handler
	endpoints *endpoints
	discovery aggregated.ResourceManager
	resources func() map[string][]apidiscoveryv2.APIGroupDiscovery
}

// endpoints stands for the endpoint leases, which upstream keeps in etcd.
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

// newUpstream starts upstream's proxy as kube-apiserver does (pkg/controlplane/apiserver), and waits until it has synced. to leads to
// the peers.
func newUpstream(ctx context.Context, t testing.TB, self string, w *world, to *transport.Config, client kubernetes.Interface, objects dynamic.Interface) *upstream {
	t.Helper()
	u := &upstream{endpoints: &endpoints{addresses: map[string]string{}}}
	leases := informers.NewSharedInformerFactory(client, 0)
	h, err := peerproxy.NewPeerProxyHandler(self, identitySelector, leases.Coordination().V1().Leases(), u.endpoints, scheme.Codecs.WithoutConversion(),
		&rest.Config{Host: "https://local", Transport: localServer{w}}, to)
	if err != nil {
		t.Fatal(err)
	}
	extensions := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	crds := extensions.ForResource(crdResource).Informer()
	if err := h.RegisterCRDInformerHandlers(crds, listedVersions); err != nil {
		t.Fatal(err)
	}
	// The local server's document, and upstream's own handler for the merged one.
	u.discovery = aggregated.NewResourceManager("apis")
	u.discovery.SetGroups(w.local[1])
	peerAggregated := aggregated.NewPeerAggregatedDiscoveryHandler(self, u.discovery, h, "apis")
	h.RegisterCacheInvalidationCallback(peerAggregated.InvalidateCache)
	u.merged, u.resources = peerAggregated, h.GetPeerResources

	leases.Start(ctx.Done())
	extensions.Start(ctx.Done())
	if err := h.RunLocalDiscoveryCacheSync(ctx.Done()); err != nil {
		t.Fatal(err)
	}
	go h.RunPeerDiscoveryCacheSync(ctx, 1)
	go h.RunPeerDiscoveryActiveGVTracker(ctx)
	go h.RunPeerDiscoveryRefilter(ctx)
	if err := h.WaitForCacheSync(ctx.Done()); err != nil {
		t.Fatal(err)
	}
	u.handler = h.WrapHandler(http.HandlerFunc(serveLocal))
	return u
}

func serveLocal(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, "local")
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// listedVersions is what kube-apiserver gives upstream's proxy (crdExtractor in pkg/controlplane/apiserver/aggregator.go), for
// objects without a Go type.
func listedVersions(object any) []schema.GroupVersion {
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

// identityLease is what a kube-apiserver writes.
func identityLease(id, holder string) *coordinationv1.Lease {
	seconds := int32(3600)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
	}
}

// crd is a CustomResourceDefinition of the group with the given versions of one resource.
func crd(group, resource string, versions ...string) *unstructured.Unstructured {
	var list []any
	for _, v := range versions {
		list = append(list, map[string]any{"name": v, "served": true})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": resource + "." + group},
		"spec":     map[string]any{"group": group, "names": map[string]any{"plural": resource}, "versions": list},
		"status": map[string]any{
			"acceptedNames": map[string]any{"plural": resource},
			"conditions":    []any{map[string]any{"type": "Established", "status": "True"}, map[string]any{"type": "NamesAccepted", "status": "True"}},
		},
	}}
}

// ask sends a request for a resource, as the given user, and returns status, content type and body.
func ask(h http.Handler, r proxy.Resource) (code int, contentType, body string) {
	path := "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
	if r.Group == "" {
		path = "/api/" + r.Version + "/" + r.Resource
	}
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept", "application/json")
	ctx := apirequest.WithUser(request.Context(), &user.DefaultInfo{Name: "alice", Groups: []string{"people"}})
	ctx = apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{
		IsResourceRequest: true, Path: path, Verb: "list", APIPrefix: "apis", APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource,
	})
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request.WithContext(ctx))
	return recorder.Code, recorder.Header().Get("Content-Type"), recorder.Body.String()
}

// mergedDocument asks a handler for the merged document.
func mergedDocument(t *testing.T, h http.Handler) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/apis", nil)
	request.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	ctx := apirequest.WithUser(request.Context(), &user.DefaultInfo{Name: "alice"})
	ctx = apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{Path: "/apis", Verb: "get"})
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request.WithContext(ctx))
	if recorder.Code != http.StatusOK {
		t.Fatalf("GET /apis: %d %s", recorder.Code, recorder.Body)
	}
	return strings.TrimSpace(recorder.Body.String())
}

// Upstream logs every retry; what it does is seen in its answers. The default error handlers remember when they were last called, and
// would wait for the end of a time that another bubble has seen.
func init() {
	klog.SetLogger(klog.Logger{})
	utilruntime.ErrorHandlers = nil
}
