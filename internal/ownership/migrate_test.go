package ownership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/skewproof/skewproof/internal/scenario"
)

var migrations = resource("storagemigration.k8s.io", "v1beta1", "storageversionmigrations", "StorageVersionMigration", false)

// Migrations are requested through the given server, in a version that some server serves, for each
// resource.
func TestMigrationsAreAskedForThroughAServer(t *testing.T) {
	c, s, cluster := newObjects(t, documents(bundles, migrations))
	o := scenario.Objects{Name: "x", Dependents: 1}
	must(t, c.Create(t.Context(), o))
	cluster.asked = nil
	must(t, c.Migrate(t.Context(), o, "b"))
	if diff := cmp.Diff([]string{"client of b"}, cluster.asked); diff != "" {
		t.Errorf("servers asked (-want +got):\n%s", diff)
	}
	const path = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations/"
	for name, of := range map[string]map[string]any{
		"x-clustertrustbundles": {"group": "certificates.k8s.io", "resource": "clustertrustbundles"}, "x-configmaps": {"group": "", "resource": "configmaps"},
	} {
		made, ok := s.objects[path+name]
		if !ok {
			t.Fatalf("%s was not asked for", name)
		}
		if diff := cmp.Diff(map[string]any{"resource": of}, made["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if done, err := c.Migrated(t.Context(), o); done || err != nil {
			t.Errorf("before %s has ended: %t, %v", name, done, err)
		}
		made["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Running", "status": "False"}, map[string]any{"type": "Succeeded", "status": "True"}}}
	}
	if done, err := c.Migrated(t.Context(), o); !done || err != nil {
		t.Errorf("after both have ended: %t, %v", done, err)
	}
}

func TestMigrationsThatNobodyServes(t *testing.T) {
	c, _, _ := newObjects(t, documents(bundles))
	o := scenario.Objects{Name: "x", Dependents: 1}
	must(t, c.Create(t.Context(), o))
	if err := c.Migrate(t.Context(), o, "b"); err == nil || !strings.Contains(err.Error(), "no ready server serves storageversionmigrations.storagemigration.k8s.io: choose --to") {
		t.Errorf("got %v", err)
	}
}

func TestWhenAMigrationHasEnded(t *testing.T) {
	for name, want := range map[string]bool{"Succeeded True": true, "Failed True": true, "Running True": false, "Succeeded False": false, "": false} {
		m := &unstructured.Unstructured{Object: map[string]any{}}
		if kind, status, ok := strings.Cut(name, " "); ok {
			m.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}}
		}
		if got := endedMigration(m); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
