package discovery

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

var accepts = []struct {
	accept             string
	aggregated, noPeer bool
}{
	{"", false, false},
	{"*/*", false, false},
	{"application/json", false, false},
	{"application/vnd.kubernetes.protobuf", false, false},
	{"text/html", false, false},
	{AcceptV2, true, false},
	{AcceptV2NoPeer, true, true},
	{AcceptV2NoPeer + "," + AcceptV2 + ",application/json", true, true},
	{AcceptV2 + "," + AcceptV2NoPeer, true, false},
	{"application/json," + AcceptV2, true, false},
	{"application/json;q=1," + AcceptV2NoPeer + ";q=0.1", true, true},
	{"text/html," + AcceptV2NoPeer, true, true},
	{"application/cbor;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer," + AcceptV2, true, false},
	{"application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer", true, true},
	{"application/yaml;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer", true, true},
	{"application/*;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer", true, true},
	{"application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList;profile=nopeer", false, false},
	{"application/json;g=apidiscovery.k8s.io;v=v2;as=Table;profile=nopeer", false, false},
	{"application/json;profile=nopeer", false, false},
	{AcceptV2 + ";profile=NoPeer", true, false},
	{AcceptV2NoPeer + ";stream=watch", true, true},
	{AcceptV2NoPeer + ";stream=other", false, false},
	{AcceptV2NoPeer + ";sv=v1," + AcceptV2, true, false},
	{";,;=,/,q=", false, false},
}

func TestNegotiation(t *testing.T) {
	for _, c := range append(accepts, []struct {
		accept             string
		aggregated, noPeer bool
	}{ // upstream 1.37 does not know v2beta1
		{AcceptV2Beta1, true, false},
		{AcceptV2Beta1 + ";profile=nopeer", true, true},
		{AcceptV2 + "," + AcceptV2Beta1 + ";profile=nopeer", true, false},
	}...) {
		if got := IsAggregated(c.accept); got != c.aggregated {
			t.Errorf("IsAggregated(%q) is %v", c.accept, got)
		}
		if got := WantsNoPeer(c.accept); got != c.noPeer {
			t.Errorf("WantsNoPeer(%q) is %v", c.accept, got)
		}
	}
}

// TestNegotiationEqualsUpstream compares our choice with the handler that upstream's wrapper
// chooses.
func TestNegotiationEqualsUpstream(t *testing.T) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.UnknownVersionInteroperabilityProxy) {
		t.Fatal("upstream's feature gate is no longer on by default: turn it on here")
	}
	var chosen string
	choice := func(name string) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { chosen = name })
	}
	upstream := aggregated.WrapAggregatedDiscoveryToHandler(choice("legacy"), choice("no peer"), choice("merged"))
	for _, c := range accepts {
		r := httptest.NewRequest(http.MethodGet, "/apis", nil)
		r.Header.Set("Accept", c.accept)
		chosen = ""
		upstream.ServeHTTP(httptest.NewRecorder(), r)
		want := map[string][2]bool{"legacy": {false, false}, "no peer": {true, true}, "merged": {true, false}}[chosen]
		if got := [2]bool{IsAggregated(c.accept), WantsNoPeer(c.accept)}; got != want {
			t.Errorf("Accept %q: aggregated, no peer: %v; upstream chose %q", c.accept, got, chosen)
		}
	}
}
