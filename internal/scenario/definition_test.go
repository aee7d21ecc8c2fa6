package scenario

import (
	"strings"
	"testing"
)

func TestADefinitionHasWhatItsKindOfAPINeeds(t *testing.T) {
	right := func() Definition {
		return Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1", "v2"}}
	}
	for name, c := range map[string]struct {
		change func(*Definition)
		want   string // "": valid
	}{
		"plain": {func(*Definition) {}, ""},
		"names": {func(d *Definition) {
			d.Kind, d.ShortNames, d.Categories, d.Storage = "Widget", []string{"w"}, []string{"all"}, "v1"
		}, ""},
		"aggregated":                     {func(d *Definition) { d.Aggregated, d.Preferred = true, "v1" }, ""},
		"no dot":                         {func(d *Definition) { d.Group = "example" }, "needs a dot"},
		"no versions":                    {func(d *Definition) { d.Versions = nil }, "versions are needed"},
		"aggregated with a short name":   {func(d *Definition) { d.Aggregated, d.ShortNames = true, []string{"w"} }, "takes its names from its server"},
		"a custom resource that prefers": {func(d *Definition) { d.Preferred = "v1" }, "prefers no version"},
		"stored as a stranger":           {func(d *Definition) { d.Storage = "v3" }, `"v3" is none of its versions`},
		"preferring a stranger":          {func(d *Definition) { d.Aggregated, d.Preferred = true, "v3" }, `"v3" is none of its versions`},
	} {
		t.Run(name, func(t *testing.T) {
			d := right()
			c.change(&d)
			err := d.validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// The simulator keeps documents by these strings.
func TestDefinitionsThatDifferHaveDifferentStrings(t *testing.T) {
	base := Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1", "v2"}}
	seen := map[string]string{}
	for name, change := range map[string]func(*Definition){
		"base": func(*Definition) {}, "aggregated": func(d *Definition) { d.Aggregated = true }, "kind": func(d *Definition) { d.Kind = "Widget" },
		"short name": func(d *Definition) { d.ShortNames = []string{"w"} }, "category": func(d *Definition) { d.Categories = []string{"w"} },
		"storage": func(d *Definition) { d.Storage = "v1" }, "preferred": func(d *Definition) { d.Preferred = "v1" },
		"versions": func(d *Definition) { d.Versions = []string{"v1"} }, "group": func(d *Definition) { d.Group = "other.example.com" },
	} {
		d := base
		change(&d)
		if other, ok := seen[d.String()]; ok {
			t.Errorf("%s and %s are both %q", name, other, d)
		}
		seen[d.String()] = name
	}
}
