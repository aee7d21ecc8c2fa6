package recorded

import (
	"reflect"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

var (
	configMaps  = history.GVR{Version: "v1", Resource: "configmaps"}
	pods        = history.GVR{Version: "v1", Resource: "pods"}
	deployments = history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}
	csiNodes    = history.GVR{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}
	nobodys     = history.GVR{Group: "apps", Version: "v9", Resource: "deployments"}
	custom      = history.GVR{Group: customGroup, Version: "v1", Resource: "widgets"}
)

// only cuts groups as Go values, without going through bytes.
func only(groups discovery.Groups, keep []history.GVR) discovery.Groups {
	left := discovery.Groups{}
	for _, g := range groups {
		versions := g.Versions
		g.Versions = nil
		for _, gv := range versions {
			resources := gv.Resources
			gv.Resources = nil
			for _, r := range resources {
				if slices.Contains(keep, history.GVR{Group: g.Name, Version: gv.Version, Resource: r.Resource}) {
					gv.Resources = append(gv.Resources, r)
				}
			}
			if len(gv.Resources) > 0 {
				g.Versions = append(g.Versions, gv)
			}
		}
		if len(g.Versions) > 0 {
			left = append(left, g)
		}
	}
	return left
}

func TestSmallKeepsWhatItShould(t *testing.T) {
	skew, err := Skew("v1.36.3", "v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		v := mustGet(t, name)
		for what, keep := range map[string][]history.GVR{
			"a few":          {deployments, pods, nobodys, configMaps, custom, csiNodes},
			"core only":      {pods},
			"groups only":    {csiNodes},
			"what is skewed": skew,
			"nobody's":       {nobodys, custom},
			"nothing":        nil,
			"everything":     named(v),
		} {
			small := v.Small(keep)
			var want []history.Resource
			for _, r := range v.Document.Resources {
				if slices.Contains(keep, r.GVR) {
					want = append(want, r)
				}
			}
			if !reflect.DeepEqual(small.Document.Resources, want) {
				t.Errorf("%s, %s: the document lists %v, the whole one %v of these", name, what, small.Document.Resources, want)
			}
			for root := range v.Roots {
				if want := only(v.Roots[root], keep); !reflect.DeepEqual(small.Roots[root], want) {
					t.Errorf("%s, %s: root %d lists %v, want %v", name, what, root, small.Roots[root], want)
				}
			}
			if small.Name != name || small.Document.Bytes != len(small.Bodies[proxy.RootCore])+len(small.Bodies[proxy.RootGroups]) {
				t.Errorf("%s, %s: it is %q with %d bytes", name, what, small.Name, small.Document.Bytes)
			}
			if same := small.Document.Hash == v.Document.Hash; same != (what == "everything") {
				t.Errorf("%s, %s: the hash is that of the whole document: %v", name, what, same)
			}
		}
	}
}

func TestSmallSubresources(t *testing.T) {
	for name, want := range map[string]bool{"v1.36.3": false, "v1.37.1": true} {
		small := mustGet(t, name).Small([]history.GVR{csiNodes})
		index := discovery.NewIndex(small.Roots[proxy.RootGroups])
		if !index.Resource(csiNodes.Group, csiNodes.Version, csiNodes.Resource, "") ||
			index.Resource(csiNodes.Group, csiNodes.Version, csiNodes.Resource, "status") != want {
			t.Errorf("%s: csinodes %v, want them with status: %v", name, small.Document.Resources, want)
		}
	}
}

func TestSmallIsMadeOnce(t *testing.T) {
	v := mustGet(t, "v1.37.1")
	a := v.Small([]history.GVR{pods, csiNodes})
	if b := v.Small([]history.GVR{csiNodes, nobodys, pods, pods}); a != b {
		t.Error("the same resources in another order, with one twice and one that is not served, are made again")
	}
	if a == v.Small([]history.GVR{pods}) || a == mustGet(t, "v1.36.3").Small([]history.GVR{pods, csiNodes}) {
		t.Error("other resources, or another release, are taken for the same")
	}
	for _, gvr := range named(v) {
		if got := named(v.Small([]history.GVR{gvr})); len(got) != 1 || got[0] != gvr {
			t.Errorf("asked for %s, got %s", gvr, got)
		}
	}
	if again := a.Small([]history.GVR{pods}); !reflect.DeepEqual(again.Document, v.Small([]history.GVR{pods}).Document) {
		t.Errorf("cut twice: %+v", again.Document)
	}
}

// TestSmallForgets draws more sets of resources than the cache keeps.
func TestSmallForgets(t *testing.T) {
	resources := named(mustGet(t, "v1.37.1"))[:9] // 512 sets
	v := mustGet(t, "v1.37.1").Small(resources)
	for set := range 1 << len(resources) {
		var chosen []history.GVR
		for i, r := range resources {
			if set&(1<<i) != 0 {
				chosen = append(chosen, r)
			}
		}
		if got := len(v.Small(chosen).Document.Resources); got != len(chosen) {
			t.Fatalf("%d resources, want %v", got, chosen)
		}
		if len(v.cuts.made) > maxCuts {
			t.Fatalf("%d are kept", len(v.cuts.made))
		}
	}
}

func BenchmarkSmall(b *testing.B) {
	v := mustGet(b, "v1.37.1")
	resources, err := Skew("v1.36.3", "v1.37.1")
	if err != nil {
		b.Fatal(err)
	}
	resources = resources[:6]
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Small(resources)
		}
	})
	b.Run("made", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.cuts.made = nil
			v.Small(resources)
		}
	})
}
