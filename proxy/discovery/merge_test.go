package discovery

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// doc parses "apps/v1:deployments,replicasets batch/v1": groups in this order, each with one
// version. A repeated group gets another version. A group without a slash has no version.
func doc(text string) Groups {
	var groups Groups
	for _, field := range strings.Fields(text) {
		gv, resources, _ := strings.Cut(field, ":")
		group, version, hasVersion := strings.Cut(gv, "/")
		if n := len(groups); n == 0 || groups[n-1].Name != group {
			groups = append(groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}})
		}
		if !hasVersion {
			continue
		}
		v := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, name := range strings.FieldsFunc(resources, func(r rune) bool { return r == ',' }) {
			v.Resources = append(v.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: name, ResponseKind: &metav1.GroupVersionKind{Kind: name}, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get"},
			})
		}
		g := &groups[len(groups)-1]
		g.Versions = append(g.Versions, v)
	}
	return groups
}

// text is the inverse of doc.
func text(groups Groups) string {
	var fields []string
	for _, g := range groups {
		if len(g.Versions) == 0 {
			fields = append(fields, g.Name)
		}
		for _, v := range g.Versions {
			field := g.Name + "/" + v.Version
			if names := namesOf(v.Resources, resourceLevel.key); len(names) > 0 {
				field += ":" + strings.Join(names, ",")
			}
			fields = append(fields, field)
		}
	}
	return strings.Join(fields, " ")
}

func TestMergeOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		docs []string // newest first
		want string
	}{
		{"nothing", nil, ""},
		{"one server", []string{"b/v1 a/v1"}, "b/v1 a/v1"},
		{"a group goes after its predecessor", []string{"a/v1 b/v1 c/v1", "a/v1 x/v1 c/v1"}, "a/v1 x/v1 b/v1 c/v1"},
		{"a chain of new groups stays together", []string{"a/v1 b/v1", "a/v1 x/v1 y/v1 b/v1"}, "a/v1 x/v1 y/v1 b/v1"},
		{"a group without predecessor goes first", []string{"a/v1", "x/v1 a/v1"}, "x/v1 a/v1"},
		{"the newest wins a contradiction", []string{"a/v1 b/v1", "b/v1 a/v1"}, "a/v1 b/v1"},
		{"the second newest wins over the third", []string{"a/v1", "a/v1 y/v1 x/v1", "x/v1 y/v1"}, "a/v1 y/v1 x/v1"},
		{"the newest has nothing", []string{"", "b/v1 a/v1"}, "b/v1 a/v1"},
		{"resources as groups", []string{"a/v1:p,r", "a/v1:p,q,r,s"}, "a/v1:p,q,r,s"},
		{"a version after its predecessor", []string{"a/v2 a/v1", "a/v2 a/v1 a/v1beta1"}, "a/v2 a/v1 a/v1beta1"},
		{"a preferred beta goes after the stable version", []string{"a/v1", "a/v1beta1"}, "a/v1 a/v1beta1"},
		{"an alpha between stable versions goes after both", []string{"a/v2 a/v1", "a/v2 a/v1alpha1 a/v1"}, "a/v2 a/v1 a/v1alpha1"},
		{"a stable version goes before betas", []string{"a/v1beta1", "a/v1"}, "a/v1 a/v1beta1"},
		{"an older server's stable version does not become preferred", []string{"a/v2", "a/v1"}, "a/v2 a/v1"},
		{"an older server's beta does not go first among betas", []string{"a/v1beta2", "a/v1beta1"}, "a/v1beta2 a/v1beta1"},
		{"the newest may prefer a beta", []string{"a/v1beta1 a/v1", "a/v1 a/v1beta1"}, "a/v1beta1 a/v1"},
		{"the newest server's preference does not apply to other versions", []string{"a/v1beta1 a/v1", "a/v1beta1 a/v1beta2 a/v1"}, "a/v1beta1 a/v1 a/v1beta2"},
		{"a stable version after a beta goes after all stable ones", []string{"a/v2 a/v1beta1", "a/v1beta1 a/v1"}, "a/v2 a/v1 a/v1beta1"},
		{"stability levels come in order", []string{"a/hub", "a/v1alpha1", "a/v1beta1", "a/v1"}, "a/v1 a/v1beta1 a/v1alpha1 a/hub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sources []Source
			for i, d := range c.docs {
				sources = append(sources, Source{Server: string(rune('a' + i)), Version: "v1." + string(rune('9'-i)) + ".0", Groups: doc(d)})
			}
			if got := text(Merge(sources)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNewestFirst(t *testing.T) {
	sources := []Source{
		{Server: "b", Version: ""}, {Server: "a", Version: "nonsense"}, {Server: "c", Version: "v1.9.12"}, {Server: "d", Version: "v1.37.1-rc.0"},
		{Server: "f", Version: "v1.37.1+build"}, {Server: "e", Version: "v1.37.1"}, {Server: "g", Version: "1.37"}, {Server: "h", Version: "v1.38.0-alpha.1"},
		{Server: "i", Version: "1.37.1.0"},
	}
	want := "h e f i d g c a b"
	r := newRandom(1)
	for range 500 {
		permuted := slices.Clone(sources)
		r.Shuffle(len(permuted), func(i, j int) { permuted[i], permuted[j] = permuted[j], permuted[i] })
		var got []string
		for _, s := range NewestFirst(permuted) {
			got = append(got, s.Server)
		}
		if strings.Join(got, " ") != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestMergeFields(t *testing.T) {
	kind := func(name string) *metav1.GroupVersionKind { return &metav1.GroupVersionKind{Kind: name} }
	document := func(freshness apidiscoveryv2.DiscoveryFreshness, r apidiscoveryv2.APIResourceDiscovery) Groups {
		r.Resource = "jobs"
		return Groups{{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Versions: []apidiscoveryv2.APIVersionDiscovery{
			{Version: "v1", Freshness: freshness, Resources: []apidiscoveryv2.APIResourceDiscovery{r}},
		}}}
	}
	newest := document("Stale", apidiscoveryv2.APIResourceDiscovery{
		Scope: "Cluster", ResponseKind: kind("New"), SingularResource: "new", ShortNames: []string{"n"}, Verbs: []string{"get", "watch"},
		Subresources: []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "status", ResponseKind: kind("New"), Verbs: []string{"get"}}},
	})
	older := document("Current", apidiscoveryv2.APIResourceDiscovery{
		Scope: "Namespaced", ResponseKind: kind("Old"), SingularResource: "old", ShortNames: []string{"o"}, Verbs: []string{"get", "list", "watch"},
		Categories: []string{"all"}, Subresources: []apidiscoveryv2.APISubresourceDiscovery{
			{Subresource: "scale", ResponseKind: kind("Scale"), Verbs: []string{"get"}}, {Subresource: "status", ResponseKind: kind("Old"), Verbs: []string{"patch"}},
		},
	})
	want := document("Current", apidiscoveryv2.APIResourceDiscovery{
		Scope: "Cluster", ResponseKind: kind("New"), SingularResource: "new", ShortNames: []string{"n"}, Verbs: []string{"get", "list", "watch"},
		Subresources: []apidiscoveryv2.APISubresourceDiscovery{
			{Subresource: "scale", ResponseKind: kind("Scale"), Verbs: []string{"get"}}, {Subresource: "status", ResponseKind: kind("New"), Verbs: []string{"patch", "get"}},
		},
	})
	got := Merge([]Source{{Server: "a", Version: "v1.36.0", Groups: older}, {Server: "b", Version: "v1.37.0", Groups: newest}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	bearer := document("", apidiscoveryv2.APIResourceDiscovery{ResponseKind: &metav1.GroupVersionKind{}, Scope: "Namespaced"})
	got = Merge([]Source{{Server: "a", Version: "v1.36.0", Groups: older}, {Server: "b", Version: "v1.37.0", Groups: bearer}})
	if diff := cmp.Diff(older, got); diff != "" {
		t.Errorf("a resource without verbs describes itself (-want +got):\n%s", diff)
	}
}

func TestMergeShares(t *testing.T) {
	a := doc("apps/v1:deployments,replicasets batch/v1:jobs policy/v1:budgets")
	equal, subset := copied(a), doc("batch/v1:jobs")
	more := doc("apps/v1:deployments,replicasets batch/v1:jobs,cronjobs policy/v1:budgets")
	sources := func(others ...Groups) []Source {
		all := []Source{{Server: "a", Version: "v1.37.0", Groups: a}}
		for i, g := range others {
			all = append(all, Source{Server: "b" + string(rune('0'+i)), Version: "v1.36.0", Groups: g})
		}
		return all
	}
	for name, others := range map[string][]Groups{"itself": {a}, "an equal copy": {equal}, "a part": {subset}, "all of them": {a, equal, subset}} {
		if got := Merge(sources(others...)); !sameBacking(got, a) {
			t.Errorf("merged with %s: the result is not the newest source's own document", name)
		}
	}
	got := Merge(sources(more))
	if !sameBacking(got[0].Versions, a[0].Versions) || !sameBacking(got[2].Versions, a[2].Versions) {
		t.Error("groups that did not change are copies")
	}
	if want := "apps/v1:deployments,replicasets batch/v1:jobs,cronjobs policy/v1:budgets"; text(got) != want {
		t.Errorf("got %s", text(got))
	}
	if got[1].Versions[0].Resources[0].ResponseKind != a[1].Versions[0].Resources[0].ResponseKind {
		t.Error("a resource that did not change is a deep copy")
	}
	if allocations := testing.AllocsPerRun(20, func() { Merge(sources(equal, equal)) }); allocations > 60 {
		t.Errorf("merging equal documents allocates %v times", allocations)
	}
}

func TestMergeRecorded(t *testing.T) {
	sources := recordedSources(t, "apis")
	merged := Merge(sources)
	certificates := find(t, merged, groupLevel.key, "certificates.k8s.io")
	names := namesOf(find(t, certificates.Versions, versionLevel.key, "v1").Resources, resourceLevel.key)
	if !slices.Contains(names, "clustertrustbundles") {
		t.Errorf("certificates.k8s.io/v1, new in 1.37, lists %q", names)
	}
	networking := find(t, merged, groupLevel.key, "networking.k8s.io")
	if got := namesOf(networking.Versions, versionLevel.key); len(got) < 2 || got[0] != "v1" || got[1] != "v1beta1" {
		t.Errorf("networking.k8s.io, whose v1beta1 is gone in 1.37, has versions %q, want v1 and v1beta1 first", got)
	}
	if !strings.HasPrefix(sources[0].Version, "v1.3") || text(merged) == text(sources[0].Groups) {
		t.Errorf("the newest, %s, is not changed by older ones: the test proves nothing", sources[0].Version)
	}
}

// TestEqualComparesEveryField fails when the API gets a field that the comparison ignores.
func TestEqualComparesEveryField(t *testing.T) {
	resource := func() *apidiscoveryv2.APIResourceDiscovery {
		return &doc("apps/v1:deployments")[0].Versions[0].Resources[0]
	}
	checkFields(t, resource, equalResource)
	checkFields(t, func() *apidiscoveryv2.APISubresourceDiscovery { return &apidiscoveryv2.APISubresourceDiscovery{} }, equalSubresource)
	r := newRandom(3)
	for range 3000 {
		a, b := r.resources(), r.resources()
		for i := range min(len(a), len(b)) {
			if got, want := equalResource(&a[i], &b[i]), reflect.DeepEqual(a[i], b[i]); got != want {
				t.Fatalf("equal is %v, reflection says %v: %v, %v", got, want, a[i], b[i])
			}
			c := a[i].DeepCopy()
			if !equalResource(&a[i], c) {
				t.Fatalf("%v does not equal its copy", a[i])
			}
			c.Verbs, c.Subresources = r.some(), nil
			if got, want := equalResource(&a[i], c), reflect.DeepEqual(a[i], *c); got != want {
				t.Fatalf("equal is %v, reflection says %v: %#v, %#v", got, want, a[i], *c)
			}
		}
	}
}

func checkFields[T any](t *testing.T, make func() *T, equal func(a, b *T) bool) {
	t.Helper()
	if !equal(make(), make()) {
		t.Fatalf("two of the same %T differ", *make())
	}
	fields := reflect.TypeFor[T]()
	for i := range fields.NumField() {
		changed := make()
		field := reflect.ValueOf(changed).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("changed")
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 7, 7))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			t.Fatalf("%s: this test does not know the kind of this field", fields.Field(i).Name)
		}
		if equal(make(), changed) {
			t.Errorf("%s.%s is not compared", fields.Name(), fields.Field(i).Name)
		}
	}
}

// TestMergeKnowsEveryField fails when groups or versions get a field that the merge ignores.
func TestMergeKnowsEveryField(t *testing.T) {
	for typ, want := range map[reflect.Type]int{
		reflect.TypeFor[apidiscoveryv2.APIGroupDiscovery](): 3, reflect.TypeFor[apidiscoveryv2.APIVersionDiscovery](): 3,
	} {
		if typ.NumField() != want {
			t.Errorf("%s has %d fields, the merge was written for %d", typ.Name(), typ.NumField(), want)
		}
	}
}
