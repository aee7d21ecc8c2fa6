package ownership

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// store keeps objects by path, for several servers. Deleted objects stay until collect is called.
type store struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	deleted []string // paths, with the propagation policy
	written []string // updates and patches: method, path, media type and body
	going   []string
	uids    int
	writes  []history.Written
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	path := r.URL.Path
	switch r.Method {
	case http.MethodPost:
		var o map[string]any
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			answer(http.StatusBadRequest, err.Error())
			return
		}
		s.uids++
		metadata := o["metadata"].(map[string]any)
		metadata["uid"] = fmt.Sprintf("uid-%d", s.uids)
		s.objects[path+"/"+metadata["name"].(string)] = o
		answer(http.StatusCreated, o)
	case http.MethodPut, http.MethodPatch:
		body, _ := io.ReadAll(r.Body)
		s.written = append(s.written, strings.Join([]string{r.Method, path, r.Header.Get("Content-Type"), strings.TrimSpace(string(body))}, " "))
		answer(http.StatusOK, s.objects[path])
	case http.MethodDelete:
		body, _ := io.ReadAll(r.Body)
		var options struct{ PropagationPolicy string }
		_ = json.Unmarshal(body, &options)
		s.deleted = append(s.deleted, strings.TrimSpace(path+" "+options.PropagationPolicy))
		s.going = append(s.going, path)
		answer(http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	default:
		if o, ok := s.objects[path]; ok {
			answer(http.StatusOK, o)
			return
		}
		if !strings.HasSuffix(path, "/configmaps") {
			answer(http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
			return
		}
		items := []any{}
		for at, o := range s.objects {
			if strings.HasPrefix(at, path+"/") {
				items = append(items, o)
			}
		}
		answer(http.StatusOK, map[string]any{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
	}
}

// remove removes the objects whose path has that prefix.
func (s *store) remove(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.objects {
		if strings.HasPrefix(path, prefix) {
			delete(s.objects, path)
		}
	}
}

// servers is a cluster of servers with one store.
type servers struct {
	cluster.Reachable
	asked []string
	url   string
	down  string
}

func (s *servers) Serving(name string) int {
	if name == s.down {
		return 0
	}
	return 1
}

func (s *servers) URL(name string) (string, error) {
	s.asked = append(s.asked, "client of "+name)
	return s.url, nil
}

func (*servers) Admin() *rest.Config { return &rest.Config{} }

func (s *servers) Direct(name string) (*rest.Config, error) {
	s.asked = append(s.asked, name)
	return &rest.Config{Host: s.url}, nil
}

var (
	bundles   = resource("certificates.k8s.io", "v1", "clustertrustbundles", "ClusterTrustBundle", false)
	requests  = resource("certificates.k8s.io", "v1", "podcertificaterequests", "PodCertificateRequest", true)
	configmap = resource("", "v1", "configmaps", "ConfigMap", true)
	namespace = resource("", "v1", "namespaces", "Namespace", false)
	quota     = resource("", "v1", "resourcequotas", "ResourceQuota", true)
)

func resource(group, version, name, kind string, namespaced bool) history.Resource {
	return history.Resource{GVR: history.GVR{Group: group, Version: version, Resource: name}, Kind: kind, Namespaced: namespaced, Verbs: []string{"create", "delete", "get"}}
}

func documents(newer ...history.Resource) map[string]history.Document {
	everywhere := []history.Resource{namespace, configmap, quota}
	return map[string]history.Document{"a": {Resources: append(newer, everywhere...)}, "b": {Resources: everywhere}}
}

func newObjects(t *testing.T, served map[string]history.Document) (*Objects, *store, *servers) {
	t.Helper()
	s := &store{objects: map[string]map[string]any{}}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	cluster := &servers{url: front.URL}
	return New(cluster, []string{"a", "b"}, func() map[string]history.Document { return served }, func(w history.Written) { s.writes = append(s.writes, w) }), s, cluster
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOwnersAreCreatedWhereTheyAreServed(t *testing.T) {
	c, s, cluster := newObjects(t, documents(bundles, requests))
	must(t, c.Create(t.Context(), scenario.Objects{Name: "x", Dependents: 2}))
	var paths []string
	for path := range s.objects {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	want := []string{
		"/api/v1/namespaces/x",
		"/api/v1/namespaces/x/configmaps/x-clustertrustbundle-0", "/api/v1/namespaces/x/configmaps/x-clustertrustbundle-1",
		"/api/v1/namespaces/x/configmaps/x-configmap-0", "/api/v1/namespaces/x/configmaps/x-configmap-1", "/api/v1/namespaces/x/configmaps/x-owner",
		"/api/v1/namespaces/x/configmaps/x-podcertificaterequest-0", "/api/v1/namespaces/x/configmaps/x-podcertificaterequest-1",
		"/apis/certificates.k8s.io/v1/clustertrustbundles/x-owner", "/apis/certificates.k8s.io/v1/namespaces/x/podcertificaterequests/x-owner",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	owner := s.objects[want[8]]["metadata"].(map[string]any)["uid"]
	reference := s.objects[want[1]]["metadata"].(map[string]any)["ownerReferences"].([]any)[0].(map[string]any)
	if diff := cmp.Diff(map[string]any{
		"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "name": "x-owner", "uid": owner, "blockOwnerDeletion": true,
	}, reference); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cluster.down = "a"
	if err := c.Create(t.Context(), scenario.Objects{Name: "y", Dependents: 1}); err == nil || !strings.Contains(err.Error(), "no server that serves clustertrustbundles") {
		t.Errorf("with the only server that serves it down: %v", err)
	}
}

func TestOwnersOfACustomResource(t *testing.T) {
	served := documents(bundles, requests)
	c, s, _ := newObjects(t, served)
	o := scenario.Objects{Name: "x", Dependents: 1, Of: &scenario.Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1"}}}
	if err := c.Create(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no ready server serves widgets.example.com: define it") {
		t.Errorf("before it is served: %v", err)
	}
	b := served["b"]
	b.Resources = append(b.Resources, resource("example.com", "v1", "widgets", "Widget", false))
	served["b"] = b
	must(t, c.Create(t.Context(), o))
	for _, path := range []string{"/apis/example.com/v1/widgets/x-owner", "/api/v1/namespaces/x/configmaps/x-widget-0"} {
		if s.objects[path] == nil {
			t.Errorf("there is no %s in %v", path, slices.Collect(maps.Keys(s.objects)))
		}
	}
	if len(s.objects) != 3 { // also those in the namespace
		t.Errorf("%d objects were made, want 3", len(s.objects))
	}
}

func TestAQuotaCountsTheKindsOfOwnersThatHaveNamespaces(t *testing.T) {
	c, s, _ := newObjects(t, documents(bundles, requests))
	o := scenario.Objects{Name: "x", Dependents: 1}
	must(t, c.Create(t.Context(), o))
	must(t, c.CreateQuota(t.Context(), o))
	want := map[string]any{"count/configmaps": plenty, "count/podcertificaterequests.certificates.k8s.io": plenty}
	if diff := cmp.Diff(map[string]any{"hard": want}, s.objects["/api/v1/namespaces/x/resourcequotas/x"]["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCollectedIsWhenAllThatHasToGoIsGone(t *testing.T) {
	c, s, _ := newObjects(t, documents(bundles))
	o := scenario.Objects{Name: "x", Dependents: 2}
	expect := func(when string, want bool) {
		t.Helper()
		if done, err := c.Collected(t.Context()); err != nil || done != want {
			t.Errorf("%s: collected is %t, %v; want %t", when, done, err, want)
		}
	}
	must(t, c.Create(t.Context(), o))
	expect("before anything was deleted", true)
	must(t, c.DeleteOwners(t.Context(), o, scenario.Foreground))
	want := []string{"/apis/certificates.k8s.io/v1/clustertrustbundles/x-owner Foreground", "/api/v1/namespaces/x/configmaps/x-owner Foreground"}
	if diff := cmp.Diff(want, s.deleted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	expect("when nothing is gone", false)
	s.remove("/apis/certificates.k8s.io/")
	expect("without the owner, with its dependents", false)
	s.remove("/api/v1/namespaces/x/configmaps/x-clustertrustbundle")
	expect("with the other owner", false)
	s.remove("/api/v1/namespaces/x/configmaps/")
	expect("when owners and dependents are gone", true)

	must(t, c.DeleteNamespace(t.Context(), o))
	expect("with the namespace", false)
	s.remove("/api/v1/namespaces/x")
	expect("without the namespace", true)
}

func TestOrphansAreDoneWhenNobodyOwnsThem(t *testing.T) {
	c, s, _ := newObjects(t, documents(bundles))
	o := scenario.Objects{Name: "x", Dependents: 1}
	must(t, c.Create(t.Context(), o))
	must(t, c.DeleteOwners(t.Context(), o, scenario.Orphan))
	s.remove("/apis/certificates.k8s.io/")
	s.remove("/api/v1/namespaces/x/configmaps/x-owner")
	if done, err := c.Collected(t.Context()); done || err != nil {
		t.Errorf("dependents still name the owner: collected is %t, %v", done, err)
	}
	for _, dependent := range s.objects {
		delete(dependent["metadata"].(map[string]any), "ownerReferences")
	}
	if done, err := c.Collected(t.Context()); !done || err != nil {
		t.Errorf("dependents without owners: collected is %t, %v", done, err)
	}
}

// Held objects in the namespace have a finalizer, and lose it when they are released.
func TestObjectsAreHeldUntilTheyAreReleased(t *testing.T) {
	c, s, _ := newObjects(t, documents(bundles, requests))
	o := scenario.Objects{Name: "x", Dependents: 1, Held: true}
	must(t, c.Create(t.Context(), o))
	finalizers := map[string]any{}
	for path, o := range s.objects {
		if f := o["metadata"].(map[string]any)["finalizers"]; f != nil {
			finalizers[path] = f
		}
	}
	const request, own = "/apis/certificates.k8s.io/v1/namespaces/x/podcertificaterequests/x-owner", "/api/v1/namespaces/x/configmaps/x-owner"
	if diff := cmp.Diff(map[string]any{request: []any{holds}, own: []any{holds}}, finalizers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(t, c.Release(t.Context(), o))
	const released = ` application/merge-patch+json {"metadata":{"finalizers":null}}`
	if diff := cmp.Diff([]string{"PATCH " + request + released, "PATCH " + own + released}, s.written); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.written = nil
	if err := c.Release(t.Context(), scenario.Objects{Name: "other", Held: true}); err != nil || s.written != nil {
		t.Errorf("%v, %v", err, s.written)
	}
}
