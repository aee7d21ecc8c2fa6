package sim

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

func crd(resource string, versions ...string) scenario.Definition {
	return scenario.Definition{Group: "stable.example.com", Resource: resource, Versions: versions}
}

// defined applies definitions one after the other, and returns the resources that are established.
// Definitions that are refused must be those that the test names.
func defined(t *testing.T, refused []string, all ...scenario.Definition) []definition {
	t.Helper()
	var etcd []definition
	for _, d := range all {
		var err error
		etcd, err = apply(etcd, d, time.Time{})
		var refusal *scenario.RefusedStep
		if is := errors.As(err, &refusal); is != slices.Contains(refused, d.String()) || err != nil && !is {
			t.Errorf("%s: error %v", d, err)
		}
	}
	return etcd
}

func established(etcd []definition) (all []string) {
	for _, d := range etcd {
		if d.established {
			all = append(all, d.Resource)
		}
	}
	slices.Sort(all)
	return all
}

// TestDefinitionsFromTheSkew in internal/e2e sends the same requests to real kube-apiservers.
func TestNamesOfCustomResources(t *testing.T) {
	var gadgets, gizmos, gears scenario.Definition
	for name, c := range map[string]struct {
		change      func()
		established string
	}{
		"other names":                {func() { gizmos.Kind = "Gizmo" }, "gadgets gears gizmos"},
		"the kind of another":        {func() { gizmos.Kind = "Gadget" }, "gadgets gears"},
		"the kind of another's list": {func() { gizmos.Kind = "GadgetList" }, "gadgets gears"},
		"the short name of another":  {func() { gizmos.Kind, gizmos.ShortNames = "Gizmo", []string{"x", "g"} }, "gadgets gears"},
		"the plural name of another": {func() { gizmos.ShortNames = []string{"gadgets"} }, "gadgets gears"},
		"a category that another has": {func() {
			gizmos.ShortNames, gizmos.Categories, gadgets.Categories = nil, []string{"all"}, []string{"all"}
		}, "gadgets gears gizmos"},
		"another's name in its group":     {func() { gizmos.Group, gizmos.Kind = "other.example.com", "Gadget" }, "gadgets gears gizmos"},
		"the kind of a built-in resource": {func() { gizmos.Group, gizmos.Kind = "apps.example.com", "Deployment" }, "gadgets gears gizmos"},
	} {
		t.Run(name, func(t *testing.T) {
			gadgets, gizmos, gears = crd("gadgets", "v1"), crd("gizmos", "v1"), crd("gears", "v1")
			gadgets.Kind, gadgets.ShortNames = "Gadget", []string{"g"}
			c.change()
			var refused []string
			if !strings.Contains(c.established, "gizmos") {
				refused = []string{gizmos.String()}
			}
			etcd := defined(t, refused, gadgets, gizmos, gears)
			if got := strings.Join(established(etcd), " "); got != c.established {
				t.Errorf("established are %s, want %s", got, c.established)
			}
			etcd = remove(etcd, gadgets)
			if got := strings.Join(established(etcd), " "); got != "gears gizmos" {
				t.Errorf("after gadgets are gone, established are %s, want gears and gizmos, which may have the names now", got)
			}
		})
	}
}

func TestTheStorageVersionStays(t *testing.T) {
	stored, other := crd("widgets", "v1", "v2"), crd("widgets", "v2")
	stored.Storage, other.Storage = "v1", "v2"
	both := crd("widgets", "v1", "v2")
	both.Storage = "v2"
	etcd := defined(t, []string{other.String()}, stored, other)
	if len(etcd) != 1 || len(etcd[0].Versions) != 2 {
		t.Errorf("etcd has %+v: the change was refused", etcd)
	}
	defined(t, []string{other.String()}, stored, both, other) // objects of v1 may be left
	defined(t, nil, crd("widgets", "v1", "v2"), crd("widgets", "v2"), crd("widgets", "v3"))
}

// served returns for two releases with definitions whether they serve a resource of a group
// version.
func served(t *testing.T, group, version, resource string, all ...scenario.Definition) (is [2]bool, listed [2]bool) {
	t.Helper()
	etcd := defined(t, nil, all...)
	for i, name := range []string{older, newer} {
		v, err := recorded.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		s := New(Setup{})
		srv := &server{s: s, version: v}
		srv.cache = s.extend(v, etcd)
		_, is[i] = srv.serves(resourceKey{group, version, resource, ""})
		for _, r := range srv.document().Resources {
			listed[i] = listed[i] || r.Group == group && r.Version == version && r.Resource == resource
		}
	}
	return is, listed
}

// Versions 1.36.3 and 1.37.1 differ in two group versions: only the newer has
// storagemigration.k8s.io/v1 built in, and each has a part of resource.k8s.io/v1.
func TestDefinitionsInBuiltInGroupVersions(t *testing.T) {
	in := func(group, resource, version string, aggregated bool) scenario.Definition {
		return scenario.Definition{Group: group, Resource: resource, Versions: []string{version}, Aggregated: aggregated}
	}
	const migration, resources = "storagemigration.k8s.io", "resource.k8s.io"
	for name, c := range map[string]struct {
		defined                  scenario.Definition
		group, version, resource string
		want                     [2]bool // served by the older, the newer
	}{
		"nothing defined nearby":                     {crd("widgets", "v1"), migration, "v1", "storageversionmigrations", [2]bool{false, true}},
		"the same resource":                          {in(migration, "storageversionmigrations", "v1", false), migration, "v1", "storageversionmigrations", [2]bool{true, true}},
		"another in the version":                     {in(migration, "gizmos", "v1", false), migration, "v1", "gizmos", [2]bool{true, false}},
		"another hides nothing":                      {in(migration, "gizmos", "v1", false), migration, "v1", "storageversionmigrations", [2]bool{false, true}},
		"a later version":                            {in(migration, "storageversionmigrations", "v9", false), migration, "v9", "storageversionmigrations", [2]bool{true, false}},
		"a version that both have in part":           {in(resources, "devicetaintrules", "v1", false), resources, "v1", "devicetaintrules", [2]bool{false, true}},
		"another in a version of both":               {in(resources, "gizmos", "v1", false), resources, "v1", "gizmos", [2]bool{false, false}},
		"aggregated":                                 {in(migration, "gauges", "v1", true), migration, "v1", "gauges", [2]bool{true, true}},
		"an aggregated API hides built-in resources": {in(migration, "gauges", "v1", true), migration, "v1", "storageversionmigrations", [2]bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			is, listed := served(t, c.group, c.version, c.resource, c.defined)
			if is != c.want {
				t.Errorf("served by %s and %s: %v, want %v", older, newer, is, c.want)
			}
			// The newer version has the group built in, so it lists the later version and answers 404.
			if want := [2]bool{is[0], is[1] || name == "a later version"}; listed != want {
				t.Errorf("listed %v, want %v", listed, want)
			}
		})
	}
}

func TestAnAggregatedAPIComesBeforeACustomResource(t *testing.T) {
	custom, aggregated := crd("widgets", "v1"), crd("gauges", "v1")
	aggregated.Aggregated = true
	if is, _ := served(t, custom.Group, "v1", "widgets", custom, aggregated); is != [2]bool{false, false} {
		t.Errorf("the custom resource is served: %v", is)
	}
}

// versionsOf lists the versions of a group in the order of the document, with one definition.
func versionsOf(t *testing.T, group string, d scenario.Definition) string {
	t.Helper()
	v, err := recorded.Get(newer)
	if err != nil {
		t.Fatal(err)
	}
	e := New(Setup{}).extend(v, defined(t, nil, d))
	var all, listed []string
	for _, g := range e.roots[1] {
		if g.Name == group {
			for _, v := range g.Versions {
				all = append(all, v.Version)
			}
		}
	}
	for _, r := range e.document.Resources {
		if r.Group == group && !slices.Contains(listed, r.Version) {
			listed = append(listed, r.Version)
		}
	}
	if !slices.Equal(all, listed) {
		t.Errorf("%s: the document that invariants read has the order %s, the other %s", group, listed, all)
	}
	return strings.Join(all, " ")
}

// The version of a custom resource becomes the preferred one of a built-in group.
func TestTheOrderOfVersions(t *testing.T) {
	aggregated := scenario.Definition{Group: "metrics.example.com", Resource: "gauges", Versions: []string{"v1beta1", "v1"}, Aggregated: true}
	preferring := aggregated
	preferring.Preferred = "v1beta1"
	for _, c := range []struct {
		group string
		d     scenario.Definition
		want  string
	}{
		{"apps.example.com", scenario.Definition{Group: "apps.example.com", Resource: "widgets", Versions: []string{"v1beta1", "v2", "v1"}}, "v2 v1 v1beta1"},
		{"storagemigration.k8s.io", scenario.Definition{Group: "storagemigration.k8s.io", Resource: "gizmos", Versions: []string{"v1alpha9"}}, "v1alpha9 v1 v1beta1"},
		{"metrics.example.com", aggregated, "v1 v1beta1"},
		{"metrics.example.com", preferring, "v1beta1 v1"},
	} {
		if got := versionsOf(t, c.group, c.d); got != c.want {
			t.Errorf("with %s, the versions of %s are %s, want %s", c.d, c.group, got, c.want)
		}
	}
}
