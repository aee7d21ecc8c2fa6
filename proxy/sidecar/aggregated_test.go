package sidecar

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
)

// toAggregated is the caller of a request that an aggregated API server answers.
func toAggregated(u user.Info) *caller {
	c := &caller{asserted: u}
	c.aggregated.Store(true)
	return c
}

// What an aggregated API server answers may break an HTTP/2 connection, so such requests share none
// with others. An APIService without a Service is answered by the local server itself.
func TestAggregatedAPIsShareNoConnections(t *testing.T) {
	apiService := func(version string, service any) map[string]any {
		spec := map[string]any{"group": everywhere.Group, "version": version}
		if service != nil {
			spec["service"] = service
		}
		return map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + "." + everywhere.Group, "uid": version}, "spec": spec,
		}
	}
	for name, c := range map[string]struct {
		services []any
		proto    int
	}{
		"no APIService":                {nil, 2},
		"an APIService":                {[]any{apiService(everywhere.Version, map[string]any{"namespace": "n", "name": "s"})}, 1},
		"one without a Service":        {[]any{apiService(everywhere.Version, nil)}, 2},
		"one of another group version": {[]any{apiService("v9", map[string]any{"namespace": "n", "name": "s"})}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere)
			a.apiServices = c.services
			o := w.options("a", a)
			o.Peers = []string{"apiserver-nobody=127.0.0.1:1"}
			r := w.run(o)
			r.awaitReady()
			if got := r.get(w.user("alice"), common); got.code != http.StatusOK {
				t.Fatalf("%d %s", got.code, got.body)
			}
			if s, _ := a.last(common); s.proto != c.proto {
				t.Errorf("the request used HTTP/%d, want HTTP/%d", s.proto, c.proto)
			}
		})
	}
}

func TestGroupVersionOfPaths(t *testing.T) {
	for path, want := range map[string]schema.GroupVersion{
		"/apis/g.io/v1/things": {Group: "g.io", Version: "v1"}, "/apis/g.io/v1": {Group: "g.io", Version: "v1"},
		"/apis/g.io/v1/": {Group: "g.io", Version: "v1"}, "/apis/g.io/v1/namespaces/n/things/x/status": {Group: "g.io", Version: "v1"},
		"/openapi/v3/apis/g.io/v1": {Group: "g.io", Version: "v1"},
		"/apis/g.io":               {}, "/apis/g.io/": {}, "/apis": {}, "/apis/": {}, "/api/v1/pods": {}, "/openapi/v3": {}, "/openapi/v3/api/v1": {}, "": {}, "/xapis/g.io/v1": {},
	} {
		if got, ok := groupVersionOf(path); ok != (want != schema.GroupVersion{}) || ok && got != want {
			t.Errorf("%q: %v, %v; want %v", path, got, ok, want)
		}
	}
}
