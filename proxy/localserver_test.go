package proxy_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// process is one process of the local server. It lists its resources with kube-apiserver's own
// managers. It stands behind both implementations.
type process struct {
	core, groups aggregated.ResourceManager
	alone        http.Handler                     // see handler
	custom       map[schema.GroupVersion][]string // resources that are listed for definitions
	services     map[schema.GroupVersion]bool     // group versions that are listed for APIServices
}

func newProcess(builtin [2]discovery.Groups) *process {
	s := &process{
		core: aggregated.NewResourceManager("api"), groups: aggregated.NewResourceManager("apis"),
		custom: map[schema.GroupVersion][]string{}, services: map[schema.GroupVersion]bool{},
	}
	s.core.SetGroups(builtin[0])
	s.groups.SetGroups(builtin[1])
	s.alone = s.handler(nil)
	return s
}

// handler is the handler behind the proxy (kube-aggregator, pkg/apiserver/apiserver.go). If merged
// is not nil, it answers requests for the merged document.
func (s *process) handler(merged http.Handler) http.Handler {
	other := http.HandlerFunc(serveLocal)
	api := aggregated.WrapAggregatedDiscoveryToHandler(other, s.core, nil)
	apis := aggregated.WrapAggregatedDiscoveryToHandler(other, s.groups, merged)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			api.ServeHTTP(w, r)
		case "/apis":
			apis.ServeHTTP(w, r)
		case "/version":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
		default:
			serveLocal(w, r)
		}
	})
}

func serveLocal(w http.ResponseWriter, r *http.Request) {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		got, _ := receive(r)
		got.by = ""
		x.note(got)
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, "local")
}

// RoundTrip makes the process the transport of the loopback client.
func (s *process) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	s.alone.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// define lists custom resources as upstream's controller does (apiextensions-apiserver,
// customresource_discovery_controller.go). The exception is shown by
// TestUpstreamKeepsTheGroupOfADeletedDefinition.
func (s *process) define(listed map[schema.GroupVersion][]string) {
	manager := s.groups.WithSource(aggregated.CRDSource)
	for _, gv := range slices.SortedFunc(maps.Keys(s.custom), compareVersions) {
		if listed[gv] == nil {
			manager.RemoveGroupVersion(metav1.GroupVersion(gv))
		}
	}
	for _, gv := range slices.SortedFunc(maps.Keys(listed), compareVersions) {
		manager.AddGroupVersion(gv.Group, versionOf(gv, listed[gv]))
		manager.SetGroupVersionPriority(metav1.GroupVersion(gv), 1000, 100)
	}
	s.custom = listed
}

// aggregate lists aggregated APIs as upstream does (kube-aggregator, handler_discovery.go). An API
// whose server does not answer is listed as stale.
func (s *process) aggregate(listed, stale map[schema.GroupVersion]bool) {
	manager := s.groups.WithSource(aggregated.AggregatorSource)
	for _, gv := range slices.SortedFunc(maps.Keys(s.services), compareVersions) {
		if !listed[gv] {
			manager.RemoveGroupVersion(metav1.GroupVersion(gv))
		}
	}
	for _, gv := range slices.SortedFunc(maps.Keys(listed), compareVersions) {
		if !listed[gv] {
			continue
		}
		v := versionOf(gv, []string{"nodes"})
		if stale[gv] {
			v.Freshness, v.Resources = apidiscoveryv2.DiscoveryFreshnessStale, nil
		}
		manager.AddGroupVersion(gv.Group, v)
		manager.SetGroupVersionPriority(metav1.GroupVersion(gv), 100, 100)
	}
	s.services = listed
}

func compareVersions(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }

func versionOf(gv schema.GroupVersion, resources []string) apidiscoveryv2.APIVersionDiscovery {
	v := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, r := range resources {
		v.Resources = append(v.Resources, resourceOf(gv, r))
	}
	return v
}

func resourceOf(gv schema.GroupVersion, name string) apidiscoveryv2.APIResourceDiscovery {
	return apidiscoveryv2.APIResourceDiscovery{
		Resource: name, ResponseKind: &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: name},
		Scope: apidiscoveryv2.ScopeNamespace, SingularResource: strings.TrimSuffix(name, "s"), Verbs: []string{"get", "list"},
	}
}
