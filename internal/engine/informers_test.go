package engine

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// nowhere is a cluster with a load balancer. Nothing listens at its addresses.
type nowhere struct{ cluster.Reachable }

func (nowhere) URL(string) (string, error) { return "https://127.0.0.1:1", nil }
func (nowhere) BalancerURL() string        { return "https://127.0.0.1:1" }
func (nowhere) Admin() *rest.Config        { return &rest.Config{} }

func TestInformersAskEveryServerAndTheLoadBalancer(t *testing.T) {
	writable := func(group, version, resource string, namespaced bool) history.Resource {
		return history.Resource{GVR: history.GVR{Group: group, Version: version, Resource: resource}, Namespaced: namespaced, Verbs: []string{"create", "delete"}}
	}
	every := []history.Resource{writable("", "v1", "configmaps", true)}
	served := map[string]history.Document{
		"a": {Resources: append([]history.Resource{writable("certificates.k8s.io", "v1", "clustertrustbundles", false)}, every...)},
		"b": {Resources: every},
	}
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a"}, {Name: "b"}}, Informers: true}
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}, {Name: "b"}}}, nil)
	end, err := inform(plan, nowhere{}, func() map[string]history.Document { return served }, recorder)
	if err != nil {
		t.Fatal(err)
	}
	end()
	if err := recorder.Close(nil); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	var began, ended []string
	for _, d := range h.Deliveries {
		switch d.Kind {
		case history.DeliveryStarted:
			began = append(began, d.Informer)
		case history.DeliveryEnded:
			ended = append(ended, d.Informer)
		}
	}
	slices.Sort(began)
	slices.Sort(ended)
	var want []string
	for _, resource := range []string{"certificates.k8s.io/v1/clustertrustbundles", "v1/configmaps"} {
		for _, way := range []string{"a", "b", "the load balancer"} {
			want = append(want, resource+" through "+way)
		}
	}
	if !slices.Equal(began, want) || !slices.Equal(ended, want) {
		t.Errorf("began %q\nended %q\nwant %q", began, ended, want)
	}
}

func TestInformersNeedSomethingThatOnlySomeServe(t *testing.T) {
	none := func() map[string]history.Document { return nil }
	_, err := inform(scenario.Plan{Informers: true}, nowhere{}, none, nil)
	if err == nil || !strings.Contains(err.Error(), "choose what informers ask for") {
		t.Errorf("error %v", err)
	}
	if end, err := inform(scenario.Plan{}, nil, nil, nil); err != nil {
		t.Errorf("a plan without informers: %v", err)
	} else {
		end()
	}
}
