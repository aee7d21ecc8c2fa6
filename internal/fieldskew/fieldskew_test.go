package fieldskew

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// fake is a server that treats a few fields in its own way. Two fakes share their objects.
type fake struct {
	drops    map[string]bool     // paths that it does not store on create, with a gate that is off
	unknown  map[string]bool     // paths that it does not know
	members  map[string][]string // the only values of paths
	vague    bool                // it names the object around a value that is none of the members
	invalid  map[string]string   // a value that it refuses, by path
	keeps    bool                // it stores the status of what is created
	empty    bool                // it answers an empty status
	forbids  string              // a path that nobody may set
	needs    map[string]string   // a path that is required beside another one
	defaults map[string]any
	warns    map[string]string
	objects  *sync.Map // resource and name → tree
	starts   bool      // it changes an object as soon as that is updated
	frozen   []string  // paths that nobody may change in an object
}

// writes are the parts of an object that each subresource writes. One that writes none creates
// something.
var writes = map[string]string{"status": "status", "resize": "spec", "eviction": ""}

var chance atomic.Int64

func (f *fake) Send(_ context.Context, r Request) (Answer, error) {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	stored, exists := f.objects.Load(resource + "/" + r.Name)
	if r.Method == http.MethodGet && r.Name == "" {
		var items []any
		f.objects.Range(func(key, value any) bool {
			if strings.HasPrefix(key.(string), resource+"/") {
				items = append(items, value)
			}
			return true
		})
		return Answer{Code: 200, Object: tree{"items": items}}, nil
	}
	if !exists && (r.Method == http.MethodGet || subresource != "") {
		return Answer{Code: 404}, nil
	}
	if r.Method == http.MethodGet {
		return Answer{Code: 200, Object: f.without(runtime.DeepCopyJSON(stored.(tree)), f.unknown, nil)}, nil
	}
	o := runtime.DeepCopyJSON(r.Object.(tree))
	revision, has := get(o, itsRevision)
	switch part, is := writes[subresource]; {
	case is && part == "" && r.Method == http.MethodPut, part != "" && r.Method == http.MethodPost:
		return Answer{Code: http.StatusMethodNotAllowed}, nil
	case r.Method == http.MethodPost && has:
		return Answer{Code: http.StatusBadRequest}, nil
	case r.Method == http.MethodPut:
		if f.starts {
			f.starts = false
			stored = put(stored, itsRevision, 0, "0", nil)
			f.objects.Store(resource+"/"+r.Name, stored)
		}
		if was, _ := get(stored, itsRevision); was != revision {
			return Answer{Code: http.StatusConflict}, nil
		}
	}
	var warnings []string
	o = f.without(o, f.unknown, func(path string) { warnings = append(warnings, "unknown field "+path) })
	if r.Method == http.MethodPost {
		o = f.without(o, f.drops, nil)
	}
	for path, members := range f.members {
		place := strings.Split(path, ".")
		if value, ok := get(o, place); ok && value != "" && !slices.Contains(members, value.(string)) {
			if at := strings.LastIndex(path, "."); f.vague {
				path = path[:at]
			}
			return refusal(path, metav1.CauseTypeFieldValueNotSupported, fmt.Sprintf("Unsupported value: %q: supported values: %q", value, members)), nil
		}
	}
	for _, path := range f.frozen {
		place := strings.Split(path, ".")
		was, had := get(stored, place)
		if is, has := get(o, place); r.Method == http.MethodPut && subresource == "" && (had != has || !reflect.DeepEqual(was, is)) {
			return refusal(place[0], metav1.CauseTypeFieldValueInvalid, fmt.Sprintf("Invalid value: %s: field is immutable", encode(o))), nil
		}
	}
	for path, value := range f.invalid {
		if is, _ := get(o, strings.Split(path, ".")); fmt.Sprint(is) == value {
			return refusal(path, metav1.CauseTypeFieldValueInvalid, "Invalid value"), nil
		}
	}
	if _, set := get(o, strings.Split(f.forbids, ".")); set {
		return refusal(f.forbids, metav1.CauseTypeForbidden, "Forbidden"), nil
	}
	for path, beside := range f.needs {
		if _, ok := get(o, strings.Split(path, ".")); ok {
			if _, ok := get(o, strings.Split(beside, ".")); !ok {
				return refusal(beside, metav1.CauseTypeFieldValueRequired, "Required value"), nil
			}
		}
	}
	for path, value := range f.defaults {
		place := strings.Split(path, ".")
		if _, ok := get(o, place[:len(place)-1]); ok {
			if _, ok := get(o, place); !ok {
				o = put(o, place, 0, value, nil).(tree)
			}
		}
	}
	for path, text := range f.warns {
		if _, ok := get(o, strings.Split(path, ".")); ok {
			warnings = append(warnings, text)
		}
	}
	switch part := writes[subresource]; {
	case part != "":
		written := o[part]
		if o = maps.Clone(stored.(tree)); written != nil {
			o[part] = written
		}
	case subresource != "":
		return Answer{Code: 201, Object: tree{"kind": "Status"}, Warnings: warnings}, nil
	case r.Method == http.MethodPost && !f.keeps:
		delete(o, "status")
	}
	if f.empty && o["status"] == nil {
		o["status"] = tree{}
	}
	if name, _ := get(o, itsName); !r.DryRun {
		o = put(o, itsRevision, 0, fmt.Sprint(chance.Add(1)), nil).(tree)
		f.objects.Store(resource+"/"+name.(string), o)
	}
	o = put(o, []string{"metadata", "uid"}, 0, fmt.Sprint(chance.Add(1)), nil).(tree)
	o = put(o, []string{"spec", "address"}, 0, fmt.Sprint(chance.Add(1)), nil).(tree)
	return Answer{Code: 201, Object: o, Warnings: warnings}, nil
}

func (f *fake) without(o tree, paths map[string]bool, tell func(string)) tree {
	for path := range paths {
		place := strings.Split(path, ".")
		if _, ok := get(o, place); ok {
			if o = remove(o, place).(tree); tell != nil {
				tell(path)
			}
		}
	}
	return o
}

func refusal(field string, cause metav1.CauseType, message string) Answer {
	return Answer{Code: 422, Refusal: metav1.Status{Message: message, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Type: cause, Field: field, Message: message,
	}}}}}
}

// document is an OpenAPI document of two kinds with the same template, without some properties.
func document(t *testing.T, without ...string) Schemas {
	t.Helper()
	properties := func(all string) string {
		var p map[string]any
		if err := json.Unmarshal([]byte("{"+all+"}"), &p); err != nil {
			t.Fatal(err)
		}
		for _, name := range without {
			delete(p, name)
		}
		return string(encode(p))
	}
	meta := `{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],"default":{}}`
	kind := func(name, group, spec string) string {
		return fmt.Sprintf(`%q:{"type":"object","x-kubernetes-group-version-kind":[{"group":%q,"version":"v1","kind":%q}],
		"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":%s,"spec":%s,"status":{"type":"object","properties":%s}}}`,
			name, group, name, meta, spec, properties(`"a":{"type":"string"},"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string"}}}}`))
	}
	template := `{"type":"object","properties":{"metadata":` + meta + `,"spec":{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodSpec"}}}`
	set := `{"type":"object","properties":{"count":{"type":"integer"},"template":` + template + `}}`
	body := `{"components":{"schemas":{
	"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"type":"object","properties":{"name":{"type":"string"},"labels":{"type":"object","additionalProperties":{"type":"string"}}}},
	"io.k8s.api.core.v1.PodSpec":{"type":"object","properties":` + properties(`"new":{"type":"object","required":["inner"],"properties":{"inner":{"type":"string"}}},"gated":{"type":"integer"},
		"mode":{"type":"string"},"listed":{"type":"string","enum":["A","B"]},"part":{"type":"object","properties":{"x":{"type":"boolean"},"y":{"type":"boolean"},"m":{"type":"string"}}},
		"self":{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodSpec"},"old":{"type":"string"},"ephemeralContainers":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"z":{"type":"string"}}}},
		"either":{"oneOf":[{"type":"integer"},{"type":"string"}],"format":"int-or-string"},"all":{"type":"object","x-kubernetes-preserve-unknown-fields":true}`) + `},
	"Sent":{"type":"object","x-kubernetes-group-version-kind":[{"group":"policy","version":"v1","kind":"Sent"}],"properties":
		` + properties(`"metadata":`+meta+`,"listed":{"type":"string","enum":["A","B"]},"new":{"type":"string"}`) + `},
	` + kind("Pod", "", `{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodSpec"}`) + `,
	` + kind("Set", "", set) + `,` + kind("Job", "batch", set) + `,
	"Template":{"type":"object","x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Template"}],"properties":{"metadata":` + meta + `,"template":` + template + `}}}}}`
	s := Schemas{}
	if err := s.add([]byte(body)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSweep(t *testing.T) {
	pods := Resource{GVR: history.GVR{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}
	sets := Resource{GVR: history.GVR{Version: "v1", Resource: "sets"}, Kind: "Set"}
	templates := Resource{GVR: history.GVR{Version: "v1", Resource: "podtemplates"}, Kind: "Template"}
	of := func(whole Resource, name string, updates bool) Resource {
		return Resource{GVR: history.GVR{Version: "v1", Resource: whole.Resource + "/" + name}, APIVersion: "v1", Kind: "Pod", Namespaced: true, Of: &whole, Updates: updates}
	}
	sent := of(pods, "eviction", false)
	sent.APIVersion, sent.Kind = "policy/v1", "Sent"
	noBody := of(pods, "exec", false)
	noBody.Kind = "ExecOptions"
	for name, one := range map[string]struct {
		older, newer fake
		lacks        []string // properties that the older document does not have
		resources    []Resource
		want         []string
		refused      int
		notTried     int
		judged       int // 0 for any number
	}{
		"the same": {resources: []Resource{pods, sets}},
		"an unknown field, also in templates": {
			older: fake{unknown: map[string]bool{"spec.new": true, "spec.template.spec.new": true}}, lacks: []string{"new"}, resources: []Resource{sets, pods},
			want: []string{"v1/pods spec.new [] dropped unknown, stored lost", "v1/sets spec.template.spec.new copied [] dropped unknown, stored lost"},
		},
		"a gate": {
			older: fake{drops: map[string]bool{"spec.gated": true}}, resources: []Resource{pods},
			want: []string{"v1/pods spec.gated [] dropped, stored kept"},
		},
		"a member that no document has": {
			older: fake{members: map[string][]string{"spec.mode": {"X"}, "spec.listed": {"A"}}}, newer: fake{members: map[string][]string{"spec.mode": {"X", "Y"}}},
			resources: []Resource{pods},
			want:      []string{"v1/pods spec.listed [B] refused, stored refused", "v1/pods spec.mode [Y] refused, stored refused"},
		},
		"members that a refusal names elsewhere": {
			older: fake{members: map[string][]string{"spec.part.m": {"X", "Y"}}, vague: true}, newer: fake{members: map[string][]string{"spec.part.m": {"X"}}, vague: true},
			resources: []Resource{pods},
			want:      []string{"v1/pods spec.part.m [Y] stored, refused"},
		},
		"values that few fields allow": {
			older: fake{invalid: map[string]string{"spec.old": "1a", "spec.gated": "-1"}}, newer: fake{invalid: map[string]string{"spec.old": "A b"}}, resources: []Resource{pods},
			want: []string{"v1/pods spec.gated [-1] refused, stored refused", "v1/pods spec.old [1a] refused, stored refused", "v1/pods spec.old [A b] stored, refused"},
		},
		"a rule for names of one kind": {
			older: fake{invalid: map[string]string{"metadata.name": "1a"}}, resources: []Resource{pods, sets},
			want: []string{"v1/pods metadata.name [1a] refused, stored", "v1/sets metadata.name [1a] refused, stored"},
		},
		"a rule for templates only": {
			newer: fake{invalid: map[string]string{"spec.template.spec.old": "", "template.spec.old": ""}}, resources: []Resource{pods, templates, sets},
			want: []string{"v1/podtemplates template.spec.old copied [(zero)] stored, refused", "v1/sets spec.template.spec.old copied [(zero)] stored, refused"},
		},
		"what may be changed in objects that exist": {
			older: fake{frozen: []string{"spec.part", "spec.count", "spec.listed", "spec.old", "spec.template.spec.old", "spec.template.spec.self.part"}}, newer: fake{frozen: []string{"spec.old"}},
			resources: []Resource{pods, templates, sets},
			want: []string{
				"batch/v1/jobs spec.template.spec.old copied changed [] refused, stored", "v1/pods spec.listed changed [] refused, stored",
				"v1/pods spec.part changed [] refused, stored", "v1/sets spec.count changed [] refused, stored",
			},
		},
		"what differs in new objects, and in those that exist": {
			older: fake{frozen: []string{"spec.old"}, drops: map[string]bool{"spec.old": true}}, resources: []Resource{pods},
			want: []string{"v1/pods spec.old [] dropped, stored kept"},
		},
		"the status of what is created": {
			older: fake{keeps: true, empty: true}, newer: fake{empty: true}, resources: []Resource{pods}, want: []string{"v1/pods status [] stored, dropped"},
		},
		"a default": {
			newer: fake{defaults: map[string]any{"spec.part.x": true, "spec.old": "q"}}, resources: []Resource{pods},
			want: []string{"v1/pods spec.old [(absent)] stored, defaulted kept", "v1/pods spec.part.x [(absent)] stored, defaulted kept"},
		},
		"a warning": {
			newer: fake{warns: map[string]string{"spec.items.0.z": "z is old"}}, resources: []Resource{pods},
			want: []string{"v1/pods spec.items[*].z [] stored, warned kept"},
		},
		"a warning in other words": {
			older: fake{warns: map[string]string{"spec.old": "it is old"}}, newer: fake{warns: map[string]string{"spec.old": "it is very old"}}, resources: []Resource{pods},
		},
		"a field that needs another one": {
			older: fake{drops: map[string]bool{"spec.part.y": true}}, newer: fake{needs: map[string]string{"spec.part.y": "spec.old"}}, resources: []Resource{pods},
			want: []string{"v1/pods spec.part.y [] dropped, stored kept"},
		},
		"a field without any value": {
			older:     fake{members: map[string][]string{"spec.old": {}}, needs: map[string]string{"spec.old": "spec.none"}},
			newer:     fake{members: map[string][]string{"spec.old": {}}, needs: map[string]string{"spec.old": "spec.none"}},
			resources: []Resource{pods}, refused: 1,
		},
		"what nobody may set":               {older: fake{forbids: "spec.part"}, newer: fake{forbids: "spec.part"}, resources: []Resource{pods}, refused: 1, judged: 13},
		"what a subresource does not write": {resources: []Resource{of(pods, "status", true)}, judged: 16},
		"subresources of one version":       {resources: []Resource{pods, of(pods, "status", true), of(pods, "resize", true), sent, noBody}},
		"a field that only a subresource writes": {
			older: fake{unknown: map[string]bool{"status.b": true}}, lacks: []string{"b"}, resources: []Resource{pods, of(pods, "status", true), of(pods, "resize", true)},
			want: []string{"v1/pods/status status.b [] dropped unknown, stored lost"},
		},
		"a field of the resource, which a subresource does not write": {
			older: fake{unknown: map[string]bool{"spec.new": true}}, lacks: []string{"new"}, resources: []Resource{of(pods, "status", true), pods, of(pods, "resize", true)},
			want: []string{"v1/pods spec.new [] dropped unknown, stored lost"},
		},
		"a field that is tried at a subresource": {
			older: fake{drops: map[string]bool{"spec.ephemeralContainers": true}}, resources: []Resource{pods},
		},
		"an object that a server changes": {newer: fake{starts: true}, resources: []Resource{of(pods, "status", true)}},
		"a member that a subresource refuses": {
			older: fake{members: map[string][]string{"status.a": {"X"}}}, newer: fake{members: map[string][]string{"status.a": {"X", "Y"}}},
			resources: []Resource{of(pods, "status", true)},
			want:      []string{"v1/pods/status status.a [Y] refused, stored refused"},
		},
		"a subresource that creates, and answers nothing": {
			older: fake{members: map[string][]string{"listed": {"A"}}, unknown: map[string]bool{"new": true}}, lacks: []string{"new"}, resources: []Resource{pods, sent},
			want: []string{"v1/pods/eviction listed [B] refused, stored", "v1/pods/eviction new [] warned unknown, stored"},
		},
		"a subresource of what is not created": {
			resources: []Resource{pods, of(Resource{GVR: history.GVR{Version: "v1", Resource: "namespaces"}, Kind: "Pod"}, "status", true)}, notTried: 6,
		},
		"a subresource of what exists already": {
			newer:     fake{defaults: map[string]any{"status.a": "q"}},
			resources: []Resource{pods, of(Resource{GVR: history.GVR{Version: "v1", Resource: "nodes"}, Kind: "Pod"}, "status", true)},
			want:      []string{"v1/nodes/status status.a [(absent)] stored, defaulted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			one.older.objects, one.newer.objects = new(sync.Map), nil
			one.newer.objects = one.older.objects
			sides := [2]Side{{"v1.1.0", &one.older, document(t, one.lacks...)}, {"v1.2.0", &one.newer, document(t)}}
			f, err := Sweep(t.Context(), sides, one.resources, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Update(t.Context()); err != nil {
				t.Fatal(err)
			}
			kinds, subresources := 0, 0
			for _, r := range one.resources {
				switch {
				case r.Of == nil:
					kinds++
				case r.Kind != noBody.Kind:
					subresources++
				}
			}
			if diff := cmp.Diff(one.want, describe(f.Table.Fields)); diff != "" {
				t.Error(diff)
			}
			if one.judged > 0 && f.Table.Counts.Judged != one.judged {
				t.Errorf("%d paths are judged, want %d", f.Table.Counts.Judged, one.judged)
			}
			if f.Table.Counts.RefusedAlike != one.refused || f.Table.Counts.NotTried != one.notTried || f.Table.Counts.Judged < 11 ||
				f.Table.Counts.Kinds != kinds || f.Table.Counts.Subresources != subresources {
				t.Errorf("counts %+v, refused %v", f.Table.Counts, f.Table.RefusedAlike)
			}
		})
	}
}

func describe(fields []recorded.FieldSkew) (all []string) {
	side := func(s recorded.FieldSide) string {
		if s.Unknown {
			return string(s.Outcome) + " unknown"
		}
		return string(s.Outcome)
	}
	for _, f := range fields {
		copied := ""
		if f.Copied {
			copied = " copied"
		}
		if f.Changed {
			copied += " changed"
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s%s %v %s, %s %s", f.GVR, f.Path, copied, f.Values, side(f.Older), side(f.Newer), f.Update)))
	}
	return all
}

// The gates of a server decide about fields. Each restart is written down.
func TestExplain(t *testing.T) {
	pods := Resource{GVR: history.GVR{Version: "v1", Resource: "pods"}, Kind: "Pod"}
	objects := new(sync.Map)
	older := fake{drops: map[string]bool{"spec.gated": true, "spec.part": true, "spec.old": true}, unknown: map[string]bool{"spec.new": true}, objects: objects}
	newer := fake{drops: map[string]bool{}, objects: objects}
	f, err := Sweep(t.Context(), [2]Side{{"v1.1.0", &older, document(t, "new")}, {"v1.2.0", &newer, document(t)}}, []Resource{pods}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	flips := []gates.Flip{
		{Name: "Other", On: true}, {Name: "Base", On: true, Dependents: []string{"Gated"}}, {Name: "Gated", On: true}, {Name: "Part", On: true, Locked: true},
		{Name: "Unstartable", On: true},
	}
	restarts := 0
	err = f.Explain(t.Context(), flips, "1.1", func(_ context.Context, side int, set map[string]bool, emulated string) error {
		restarts++
		if len(set) == 1 && maps.Equal(set, map[string]bool{"Unstartable": false}) {
			return ErrRefused
		}
		if on, ok := set["Part"]; ok && (side == 1 || !on) {
			t.Errorf("a locked gate is switched at the newer server: %v", set)
		}
		older.drops["spec.part"] = !(side == 0 && set["Part"])
		gated, ok := set["Gated"]
		off := ok && !gated || emulated == "1.1"
		newer.drops = map[string]bool{"spec.gated": off, "spec.new": off, "spec.part": false}
		maps.DeleteFunc(newer.drops, func(_ string, drops bool) bool { return !drops })
		maps.DeleteFunc(older.drops, func(_ string, drops bool) bool { return !drops })
		return nil
	}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, field := range f.Table.Fields {
		got[field.Path] = fmt.Sprint(field.Gates, field.Emulated)
	}
	want := map[string]string{"spec.gated": "[{Gated false []}] true", "spec.part": "[{Part true []}] false", "spec.old": "[] false", "spec.new": "[{Gated false []}] true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(f.Table.GatesTried) != len(flips) || restarts > 12 {
		t.Errorf("%d restarts for %q", restarts, f.Table.GatesTried)
	}
}

// No document makes the sweep go on for ever or fail.
func FuzzSchemas(f *testing.F) {
	for _, schema := range []string{
		`{"$ref":"#/components/schemas/A"}`, `{"allOf":[{"$ref":"#/components/schemas/A"}]}`, `{"$ref":"#/components/schemas/none"}`, `{"$ref":"other"}`, `{}`,
		`{"type":"array"}`, `{"type":"array","items":{"$ref":"#/components/schemas/A"}}`, `{"type":"object","additionalProperties":{"$ref":"#/components/schemas/A"}}`,
		`{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#/components/schemas/A"},"c":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}}`,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":true},"b":{"oneOf":[{"type":"string"}]},"c":{"enum":[1,null,"x"],"type":"string"}}}`,
		`{"properties":{"metadata":{"type":"string"},"":{"type":"number"},"a/b":{"type":["string","null"]}},"x-kubernetes-int-or-string":true}`,
	} {
		f.Add(schema)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		s := Schemas{}
		kind := `"K":{"properties":{"spec":{"$ref":"#/components/schemas/A"}},"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"K"}]}`
		if s.add([]byte(`{"components":{"schemas":{`+kind+`,"A":`+schema+`}}}`)) != nil {
			t.Skip()
		}
		server := &fake{objects: new(sync.Map)}
		found, err := Sweep(t.Context(), [2]Side{{"v1", server, s}, {"v2", server, s}}, []Resource{{GVR: history.GVR{Version: "v1", Resource: "ks"}, Kind: "K"}}, t.Logf)
		if err != nil || len(found.Table.Fields) > 0 {
			t.Errorf("%v, error %v", describe(found.Table.Fields), err)
		}
	})
}

// What both releases require, or either of them, is required once. Twice would build what is inside
// twice, at each level.
func TestBothRequireAFieldOnce(t *testing.T) {
	var sides [2]Schemas
	for i, required := range []string{`"b","a"`, `"a","c"`} {
		sides[i] = Schemas{}
		if err := sides[i].add([]byte(`{"components":{"schemas":{"A":{"type":"object","required":[` + required + `]}}}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := union(sides[0], sides[1])["A"].Required, []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q are required, want %q", got, want)
	}
}

// Repairs are found in the fields that refusals name.
func TestFieldPlace(t *testing.T) {
	for field, want := range map[string]string{
		"spec.containers[0].name": "spec/containers/0/name", "spec.limits[cpu]": "spec/limits/cpu", `spec.limits["a.b/c"].x`: "spec/limits/a.b/c/x", "": "", "[": "",
		"metadata.annotations[a]": "metadata/annotations/a", "..a": "a",
	} {
		if got := strings.Join(fieldPlace(field), "/"); got != want {
			t.Errorf("%q: %q, want %q", field, got, want)
		}
	}
	if got := supported(`Unsupported value: "": supported values: "A", "B"`); !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("supported values %q", got)
	}
}

func TestOwned(t *testing.T) {
	var answer tree
	if err := json.Unmarshal([]byte(`{"metadata": {"managedFields": [{"fieldsV1": {"f:metadata": {}}}, {"fieldsV1": {"f:spec": {
		"f:a": {}, "f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:z": {}}}}}}]}}`), &answer); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]bool{"spec/a": true, "spec/b": false, "spec/a/b": false, "spec/items/0/z": true, "spec/items/0/y": false} {
		if got := owned(answer, strings.Split(place, "/")); got != want {
			t.Errorf("%s: %t, want %t", place, got, want)
		}
	}
	if owned(tree{}, []string{"spec"}) {
		t.Error("a field without managedFields is owned")
	}
}
