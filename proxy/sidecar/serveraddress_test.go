package sidecar

import (
	"net"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apidiscovery "k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/client-go/kubernetes/scheme"
)

// /api names the proxy and not the server behind it. The address and port are those that a client
// inside the cluster would get from a kube-apiserver with these flags. The address of the Service
// does not change.
func TestLegacyAPINamesTheProxy(t *testing.T) {
	t.Parallel()
	const behind = "192.0.2.1:6444"
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere)
	_, services, err := net.ParseCIDR("127.0.0.0/8") // clients of this test count as pods
	if err != nil {
		t.Fatal(err)
	}
	a.versions = apidiscovery.NewLegacyRootAPIHandler(apidiscovery.DefaultAddresses{
		DefaultAddress: behind, CIDRRules: []apidiscovery.CIDRRule{{IPRange: *services, Address: "10.96.0.1:443"}},
	}, scheme.Codecs, "/api")
	o := w.options("a", a)
	o.AdvertiseAddress = net.ParseIP("192.0.2.77")
	at := w.run(o)
	at.awaitReady()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "APIVersions"}
	_, port, _ := net.SplitHostPort(at.front)
	want := []metav1.ServerAddressByClientCIDR{
		{ClientCIDR: "0.0.0.0/0", ServerAddress: "192.0.2.77:" + port},
		{ClientCIDR: "127.0.0.0/8", ServerAddress: "10.96.0.1:443"},
	}
	for _, accept := range []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"} {
		for _, path := range []string{"/api", "/api/"} {
			got := at.get(w.user("alice"), path, "Accept", accept)
			decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(got.body), &kind, nil)
			versions, ok := decoded.(*metav1.APIVersions)
			if got.code != http.StatusOK || err != nil || !ok {
				t.Errorf("%s in %s: %d %q, %T, %v", path, accept, got.code, got.body, decoded, err)
				continue
			}
			if len(versions.Versions) != 1 || len(versions.ServerAddressByClientCIDRs) != 2 ||
				versions.ServerAddressByClientCIDRs[0] != want[0] || versions.ServerAddressByClientCIDRs[1] != want[1] {
				t.Errorf("%s in %s: %+v, want %+v", path, accept, versions, want)
			}
		}
	}
}
