package recorded

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestLackingIsADifference(t *testing.T) {
	for _, a := range Names() {
		for _, b := range Names() {
			serves, lacks := mustGet(t, a), mustGet(t, b)
			got := Lacking(serves, lacks)
			for _, gvr := range got {
				if serves.Find(gvr) == nil || lacks.Find(gvr) != nil {
					t.Errorf("%s is not what %s serves and %s lacks", gvr, a, b)
				}
			}
			missing := 0
			for _, r := range serves.Document.Resources {
				if lacks.Find(r.GVR) == nil {
					missing++
				}
			}
			if missing != len(got) {
				t.Errorf("%s lacks %d resources of %s, listed are %d", b, missing, a, len(got))
			}
		}
	}
}

// A small release still has the group versions of the whole one: a custom resource in one of them
// is not served.
func TestASmallReleaseKeepsItsGroupVersions(t *testing.T) {
	whole := mustGet(t, "v1.37.1")
	if !slices.Contains(whole.GroupVersions, history.GVR{Group: "storagemigration.k8s.io", Version: "v1"}) ||
		slices.Contains(mustGet(t, "v1.36.3").GroupVersions, history.GVR{Group: "storagemigration.k8s.io", Version: "v1"}) {
		t.Error("storagemigration.k8s.io/v1 came with 1.37")
	}
	small := whole.Small([]history.GVR{{Version: "v1", Resource: "configmaps"}})
	if len(small.Document.Resources) != 1 || !slices.Equal(small.GroupVersions, whole.GroupVersions) {
		t.Errorf("a release of %d resources has %d group versions, want the %d of the whole one",
			len(small.Document.Resources), len(small.GroupVersions), len(whole.GroupVersions))
	}
	off, err := Get("v1.37.1+without.storagemigration.k8s.io.v1")
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(off.GroupVersions, history.GVR{Group: "storagemigration.k8s.io", Version: "v1"}) {
		t.Error("a group version that is switched off is not built in")
	}
}
