package workload

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// A kubelet has its share of the requests. Half of them are for what only some servers serve. Its
// requests take nothing from the other users, and without a share it asks for nothing.
func TestAKubeletHasItsShare(t *testing.T) {
	class := map[history.GVR]Class{}
	for _, p := range Classify(recordedDocuments(t)) {
		if p.Subresource == "" {
			class[p.Resource.GVR] = p.Class
		}
	}
	all := chosen(t, 1, 4000, Options{Nodes: 20})
	node := func(r *Request) bool { return r.User == Node }
	if share := percent(all, node); share < 18 || share > 22 {
		t.Errorf("a kubelet sends %d %%", share)
	}
	var its []Request
	for _, r := range all {
		if node(&r) {
			its = append(its, r)
			if !AsNode(&r) {
				t.Errorf("no kubelet asks for %s", &r)
			}
		}
	}
	if share := percent(its, func(r *Request) bool { return class[r.GVR] == Somewhere }); share < 48 || share > 52 {
		t.Errorf("%d %% of them are for what only some servers serve", share)
	}
	without := chosen(t, 1, 4000, Options{})
	if n := percent(without, node); n != 0 {
		t.Errorf("without a share, a kubelet sends %d %%", n)
	}
	if r := (Request{Verb: "delete", GVR: its[0].GVR}); AsNode(&r) {
		t.Errorf("a kubelet does not %s", &r)
	}
}
