package workload

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

func TestClassifyRecordedDocuments(t *testing.T) {
	var somewhere []string
	count := map[Class]int{}
	for _, p := range Classify(recordedDocuments(t)) {
		count[p.Class]++
		if p.Class == Somewhere {
			somewhere = append(somewhere, fmt.Sprint(p.Resource.GVR, p.Subresource, p.Servers))
		}
	}
	want := []string{
		"certificates.k8s.io/v1/clustertrustbundles[new]",
		"certificates.k8s.io/v1/podcertificaterequests[new]",
		"certificates.k8s.io/v1beta1/clustertrustbundles[new]",
		"certificates.k8s.io/v1beta1/podcertificaterequests[new]",
		"networking.k8s.io/v1beta1/ipaddresses[old]",
		"networking.k8s.io/v1beta1/servicecidrs[old]",
		"resource.k8s.io/v1/devicetaintrules[new]",
		"storage.k8s.io/v1/csinodesstatus[new]",
		"storage.k8s.io/v1beta1/volumeattributesclasses[old]",
		"storagemigration.k8s.io/v1/storageversionmigrations[new]",
		"storagemigration.k8s.io/v1beta1/storageversionmigrations[new]",
	}
	if !slices.Equal(somewhere, want) {
		t.Errorf("only some servers serve\n%q, want\n%q", somewhere, want)
	}
	if count[Everywhere] < 80 || count[Nowhere] != 10 {
		t.Errorf("%d resources everywhere and %d nowhere, want at least 80, and 10", count[Everywhere], count[Nowhere])
	}
}

func TestClassifyInventsNothingThatExists(t *testing.T) {
	docs := recordedDocuments(t)
	served := map[string]bool{}
	for _, doc := range docs {
		for _, r := range doc.Resources {
			served[r.String()+"/"] = true
			for _, s := range r.Subresources {
				served[r.String()+"/"+s.Name] = true
			}
		}
	}
	kinds := map[string]bool{}
	for _, p := range Classify(docs) {
		if p.Class != Nowhere {
			continue
		}
		if served[p.Resource.String()+"/"+p.Subresource] || len(p.Servers) != 0 {
			t.Errorf("%s/%s is served, by %v", p.Resource.GVR, p.Subresource, p.Servers)
		}
		switch {
		case p.Subresource != "":
			kinds["subresource"] = true
		case p.Resource.Group == unknownGroup:
			kinds["group"] = true
		case p.Resource.Version == unknownVersion:
			kinds["version"] = true
		case p.Resource.Resource == unknownResource:
			kinds["resource"] = true
		}
	}
	if len(kinds) != 4 {
		t.Errorf("of unknown groups, versions, resources and subresources only %v are probed", kinds)
	}
}

func TestClassifyOneServerOrNone(t *testing.T) {
	if probes := Classify(nil); len(probes) != 0 {
		t.Errorf("nothing is known, but there are %d probes", len(probes))
	}
	for _, p := range Classify(map[string]history.Document{"new": recordedDocuments(t)["new"]}) {
		if p.Class == Somewhere {
			t.Errorf("%s: one server alone cannot differ", p.Resource.GVR)
		}
	}
}

func TestClassifyLeavesDocumentsAlone(t *testing.T) {
	docs := recordedDocuments(t)
	before := fmt.Sprint(docs)
	Classify(docs)
	if fmt.Sprint(docs) != before {
		t.Error("the documents were changed")
	}
}

func TestUnionHoldsEveryLineOnce(t *testing.T) {
	docs := recordedDocuments(t)
	union := Union(docs["old"], docs["new"], docs["old"])
	seen := map[history.GVR]bool{}
	for _, r := range union.Resources {
		if seen[r.GVR] {
			t.Errorf("%s is listed twice", r.GVR)
		}
		seen[r.GVR] = true
	}
	csiNodes := history.GVR{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}
	if !hasSubresource(union, csiNodes, "status") || hasSubresource(docs["old"], csiNodes, "status") {
		t.Errorf("want the union, and not the old document, to list %s/status", csiNodes)
	}
	for name, doc := range docs {
		for _, r := range doc.Resources {
			if !seen[r.GVR] {
				t.Errorf("%s of the %s document is missing", r.GVR, name)
			}
		}
	}
}

// If the load forgot removed resources, it would never notice a server that still lists them or
// forwards requests for them.
func TestWhatHasDepartedIsAskedForAsWhatNobodyServes(t *testing.T) {
	thing := func(name string, subresources ...string) history.Resource {
		r := history.Resource{GVR: history.GVR{Group: "things.example.com", Version: "v1", Resource: name}, Verbs: []string{"get", "list"}}
		for _, s := range subresources {
			r.Subresources = append(r.Subresources, history.Subresource{Name: s, Verbs: []string{"get"}})
		}
		return r
	}
	old := history.Document{Resources: []history.Resource{thing("kept", "status")}}
	young := history.Document{Resources: []history.Resource{thing("kept", "status", "scale"), thing("new")}}
	var c Classifier
	nowhere := func(docs map[string]history.Document) (found []string) {
		for _, p := range c.Classify(docs) {
			if p.Class == Nowhere && p.Resource.Group == "things.example.com" && p.Resource.Version == "v1" &&
				p.Resource.Resource != unknownResource && p.Subresource != unknownSubresource {
				found = append(found, p.Resource.Resource+"/"+p.Subresource)
			}
		}
		return found
	}
	steps := []struct {
		docs map[string]history.Document
		want []string
	}{
		{map[string]history.Document{"a": young, "b": old}, nil},
		{map[string]history.Document{"b": old}, []string{"kept/scale", "new/"}},
		{map[string]history.Document{"a": young, "b": old}, nil},
		{map[string]history.Document{}, nil},
	}
	for i, step := range steps {
		if got := nowhere(step.docs); !slices.Equal(got, step.want) {
			t.Errorf("step %d: departed %q, want %q", i, got, step.want)
		}
	}
}

// The remaining probes must have no verb that writes, and no resource that can only be written to.
func TestReadableKeepsWhatCanBeRead(t *testing.T) {
	pods := history.Resource{
		GVR: history.GVR{Version: "v1", Resource: "pods"}, Verbs: []string{"create", "get", "list"},
		Subresources: []history.Subresource{
			{Name: "exec", Verbs: []string{"create", "get"}}, {Name: "status", Verbs: []string{"get", "patch"}},
			{Name: "eviction", Verbs: []string{"create"}},
		},
	}
	review := history.Resource{GVR: history.GVR{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"},
		Verbs: []string{"create"}}
	got := readable([]Probe{
		{Resource: pods, Class: Everywhere}, {Resource: review, Class: Somewhere}, {Resource: pods, Class: Somewhere, Subresource: "eviction"},
		{Resource: pods, Class: Somewhere, Subresource: "status"}, {Resource: pods, Class: Nowhere, Subresource: unknownSubresource},
	})
	if len(got) != 3 || got[0].Subresource != "" || got[1].Subresource != "status" || got[2].Subresource != unknownSubresource {
		t.Fatalf("left over: %+v", got)
	}
	left := got[0].Resource
	if len(left.Verbs) != 2 || len(left.Subresources) != 1 || left.Subresources[0].Name != "status" || len(left.Subresources[0].Verbs) != 1 {
		t.Errorf("probes of pods that remain: %+v", left)
	}
	if len(pods.Verbs) != 3 || len(pods.Subresources) != 3 {
		t.Error("the resource that was given was changed")
	}
}

// Documents come from servers. Probes and sweeps must be possible with every document, and be the
// same each time.
func FuzzClassify(f *testing.F) {
	for _, name := range []string{"api.json", "v1.36.3.apis.json"} {
		body, err := os.ReadFile("../answer/testdata/discovery/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"versions":[{"resources":[{}]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := answer.ParseDiscovery(body)
		if err != nil {
			return
		}
		docs := map[string]history.Document{"a": doc, "b": {}}
		probes := Classify(docs)
		if !reflect.DeepEqual(probes, Classify(docs)) {
			t.Fatal("classified twice, the same documents give other probes")
		}
		for _, r := range Sweep(doc, nil) {
			r.URL()
		}
		for _, profile := range scenario.Traffics {
			c := NewChooser(Options{Lane: "a", Choices: rand.New(rand.NewPCG(1, 1)), Profile: profile})
			c.Use(probes)
			for range 20 {
				if r := c.Next(); r.Method() == "" {
					t.Fatalf("%s cannot be sent", &r)
				}
			}
		}
	})
}
