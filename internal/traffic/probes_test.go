package traffic

import (
	"fmt"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func recordedDocuments(t *testing.T) map[string]history.Document {
	t.Helper()
	core := recordedDocument(t, "api.json")
	docs := map[string]history.Document{}
	for server, file := range map[string]string{"old": "v1.36.3.apis.json", "new": "v1.37.1.apis.json"} {
		doc := recordedDocument(t, file)
		doc.Resources = slices.Concat(core.Resources, doc.Resources)
		docs[server] = doc
	}
	return docs
}

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
