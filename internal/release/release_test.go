package release

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/semver"
)

func TestStringIsTheReverseOfParse(t *testing.T) {
	for _, s := range []string{"v1.30.14", "v1.30.14+without.batch.v1", "v1.30.14+without.apps.v1.and.networking.k8s.io.v1", ""} {
		r, err := Parse(s)
		if err != nil || r.String() != s {
			t.Errorf("%q becomes %q, error %v", s, r, err)
		}
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]Release{
		"v1.37.1":                   {Version: "v1.37.1"},
		"v1.38.0-rc.1":              {Version: "v1.38.0-rc.1"},
		"v1.30.14+without.batch.v1": {Version: "v1.30.14", Without: []string{"batch/v1"}},
		"v1.30.14+without.networking.k8s.io.v1.and.apps.v1": {Version: "v1.30.14", Without: []string{"apps/v1", "networking.k8s.io/v1"}},
	} {
		got, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s, diff)
		}
		if Of(s) != want.Version {
			t.Errorf("the release of %s is %s, want %s", s, Of(s), want.Version)
		}
		if semver.Compare(s, want.Version) != 0 {
			t.Errorf("%s is not as old as %s", s, want.Version)
		}
	}
	for _, s := range []string{"v1.30.14+without.", "v1.30.14+without.batch", "v1.30.14+without.batch.", "v1.30.14+without.batch/v1", "v1.30.14+without.a.v1.and."} {
		if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), "write it like") {
			t.Errorf("%s: error %v, want one that says how to write it", s, err)
		}
	}
}

func TestRuntimeConfig(t *testing.T) {
	r, err := Parse("v1.30.14+without.batch.v1.and.apps.v1")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.RuntimeConfig(); got != "apps/v1=false,batch/v1=false" {
		t.Errorf("--runtime-config=%s", got)
	}
	if r.Serves("batch", "v1") || !r.Serves("batch", "v2") || !r.Serves("", "v1") {
		t.Error("it serves an API that is switched off, or lacks another one")
	}
}
