package search

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/sim/recorded"
)

// TestSmallDocumentsHaveAllVersionsOfAGroup: the order in which a server lists its versions decides
// about the merged order. Without one of them, a small document leads to another order than the
// whole one.
func TestSmallDocumentsHaveAllVersionsOfAGroup(t *testing.T) {
	spec := Spec{Policy: "upstream-1.37", From: "v1.36.3", To: "v1.37.1", Servers: 3, Resources: 4}
	setup, err := spec.Setup()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := definitionsOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range spec.versions() {
		whole, err := recorded.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		small, err := setup.Version(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(small.Document.Resources) >= len(whole.Document.Resources) {
			t.Fatalf("%s: the document is not small", name)
		}
		for _, d := range definitions {
			want := versionsIn(whole, d.Group)
			if got := versionsIn(small, d.Group); !slices.Equal(got, want) {
				t.Errorf("%s lists %q of %s, want %q", name, got, d.Group, want)
			}
			compared = max(compared, len(want))
		}
	}
	if compared < 2 {
		t.Error("no group of a definition has several versions built in")
	}
}

func versionsIn(v *recorded.Version, group string) (all []string) {
	for _, r := range v.Document.Resources {
		if r.Group == group && !slices.Contains(all, r.Version) {
			all = append(all, r.Version)
		}
	}
	return all
}
