package scenario

import (
	"slices"
	"testing"
)

// The record of a definition in a history has all versions that the definition lists, served or
// not.
func TestAStepSaysWhatItDefines(t *testing.T) {
	plain := &Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1"}}
	stored := &Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1", "v2"}, Storage: "v2"}
	aggregated := &Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1"}, Aggregated: true}
	for name, c := range map[string]struct {
		step Step
		want []string
	}{
		"a custom resource": {Step{Action: Define, Definition: plain}, []string{"v1", StoredVersion}},
		"stored as served":  {Step{Action: Define, Definition: stored}, []string{"v1", "v2"}},
		"an aggregated API": {Step{Action: Define, Definition: aggregated}, []string{"v1"}},
		"a deletion":        {Step{Action: Undefine, Definition: plain}, nil},
	} {
		d := c.step.Defines()
		if d == nil || d.Group != "example.com" || d.Resource != "widgets" || !slices.Equal(d.Versions, c.want) {
			t.Errorf("%s: %+v, want %q", name, d, c.want)
		}
	}
	if d := (Step{Action: Restart, Server: "a"}).Defines(); d != nil {
		t.Errorf("a restart defines %+v", d)
	}
	if len(plain.Versions) != 1 {
		t.Errorf("the definition was changed: %+v", plain)
	}
}
