package recorded

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// TestSkewOfTheNewest fixes the resources in schedules of these releases.
func TestSkewOfTheNewest(t *testing.T) {
	got, err := Skew("v1.36.3", "v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"resource.k8s.io/v1/devicetaintrules",            // only 1.37
		"storage.k8s.io/v1beta1/volumeattributesclasses", // only 1.36
		"v1/configmaps",                                       // both
		"storage.k8s.io/v1/csinodes",                          // both, status only 1.37
		"resource.k8s.io/v1beta2/devicetaintrules",            // both, new in 1.36
		"storagemigration.k8s.io/v1/storageversionmigrations", // only 1.37
		"networking.k8s.io/v1beta1/ipaddresses",               // only 1.36
		"coordination.k8s.io/v1/leases",                       // both
		"resource.k8s.io/v1alpha3/devicetaintrules",           // both, status new in 1.35
	}
	for i, w := range want {
		if got[i].String() != w {
			t.Errorf("place %d has %s, want %s", i, got[i], w)
		}
	}
}

// TestSkew checks the result for every two releases against the documents alone.
func TestSkew(t *testing.T) {
	for i, older := range Names() {
		for _, newer := range Names()[i:] {
			t.Run(older+" and "+newer, func(t *testing.T) {
				got, err := Skew(older, newer)
				if err != nil {
					t.Fatal(err)
				}
				if back, err := Skew(newer, older); err != nil || !slices.Equal(got, back) {
					t.Errorf("the other way round: %v (%v), want %v", back, err, got)
				}
				a, b := named(mustGet(t, older)), named(mustGet(t, newer))
				in := func(gvr history.GVR) [2]bool { return [2]bool{slices.Contains(a, gvr), slices.Contains(b, gvr)} }
				firsts := map[[2]bool]int{} // the position of the first resource that only the older, only the newer, or both serve
				for i, gvr := range got {
					by := in(gvr)
					if by == [2]bool{} {
						t.Errorf("%s is served by neither", gvr)
					}
					if _, ok := firsts[by]; !ok {
						firsts[by] = i
					}
					if slices.Contains(got[:i], gvr) {
						t.Errorf("%s is there twice", gvr)
					}
				}
				place := 0
				for _, by := range [][2]bool{{false, true}, {true, false}, {true, true}} {
					differs := slices.ContainsFunc(slices.Concat(a, b), func(gvr history.GVR) bool { return in(gvr) == by })
					first, has := firsts[by]
					if differs != has || has && first != place {
						t.Errorf("served by older and newer %v: first at %d (%v), want place %d (%v): %v", by, first, has, place, differs, got)
					}
					if has {
						place++
					}
				}
				for _, gvr := range slices.Concat(a, b) {
					if by := in(gvr); by[0] != by[1] && !slices.Contains(got, gvr) {
						t.Errorf("%s tells them apart and is missing", gvr)
					}
				}
				for _, gvr := range shared {
					if !slices.Contains(got, gvr) {
						t.Errorf("%s, which can be written everywhere, is missing", gvr)
					}
				}
			})
		}
	}
}

// TestSkewPutsUsableFirst: a resource that can only be created is useless for schedules of reads,
// even if it is stable.
func TestSkewPutsUsableFirst(t *testing.T) {
	got, err := Skew("v1.30.14", "v1.34.4")
	if err != nil {
		t.Fatal(err)
	}
	review := slices.Index(got, history.GVR{Group: "authentication.k8s.io", Version: "v1beta1", Resource: "selfsubjectreviews"})
	slice := slices.Index(got, history.GVR{Group: "resource.k8s.io", Version: "v1alpha2", Resource: "resourceslices"})
	if slice < 0 || review < slice {
		t.Errorf("reviews at %d, slices at %d of %v", review, slice, got)
	}
}

func TestSkewUnknown(t *testing.T) {
	for _, pair := range [][2]string{{"v1.36.3", "v1.99.0"}, {"latest", "v1.36.3"}} {
		if got, err := Skew(pair[0], pair[1]); err == nil {
			t.Errorf("%q: %v, want an error", pair, got)
		}
	}
}

// TestSharedIsServedByAll: every release must serve the shared resources and allow writes to them.
func TestSharedIsServedByAll(t *testing.T) {
	for _, name := range Names() {
		v := mustGet(t, name)
		for _, gvr := range shared {
			if r := v.Find(gvr); r == nil || hardship(*r) != 1 {
				t.Errorf("%s: %s is %+v", name, gvr, r)
			}
		}
	}
}
