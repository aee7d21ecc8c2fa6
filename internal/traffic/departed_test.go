package traffic

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// A load that forgets what has left would never see that a server goes on listing or passing it on.
func TestWhatHasDepartedIsAskedForAsWhatNobodyServes(t *testing.T) {
	thing := func(name string, subresources ...string) history.Resource {
		r := history.Resource{GVR: history.GVR{Group: "things.example.com", Version: "v1", Resource: name}, Verbs: []string{"get", "list"}}
		for _, s := range subresources {
			r.Subresources = append(r.Subresources, history.Subresource{Name: s, Verbs: []string{"get"}})
		}
		return r
	}
	old := history.Document{Resources: []history.Resource{thing("kept", "status")}}
	young := history.Document{Resources: []history.Resource{thing("kept", "status", "scale"), thing("new")}}
	var c Classifier
	nowhere := func(docs map[string]history.Document) (found []string) {
		for _, p := range c.Classify(docs) {
			if p.Class == Nowhere && p.Resource.Group == "things.example.com" && p.Resource.Version == "v1" &&
				p.Resource.Resource != unknownResource && p.Subresource != unknownSubresource {
				found = append(found, p.Resource.Resource+"/"+p.Subresource)
			}
		}
		return found
	}
	steps := []struct {
		docs map[string]history.Document
		want []string
	}{
		{map[string]history.Document{"a": young, "b": old}, nil},
		{map[string]history.Document{"b": old}, []string{"kept/scale", "new/"}},
		{map[string]history.Document{"a": young, "b": old}, nil},
		{map[string]history.Document{}, nil},
	}
	for i, step := range steps {
		if got := nowhere(step.docs); !slices.Equal(got, step.want) {
			t.Errorf("step %d: departed %q, want %q", i, got, step.want)
		}
	}
}
