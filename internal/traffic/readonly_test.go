package traffic

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// Servers that are somebody else's must not even be asked to change anything. The same load without the switch shows that it would.
func TestReadOnlyLoadOnlyReads(t *testing.T) {
	methods := func(profile Profile, readOnly bool) map[string]int {
		record := newLedger()
		server := newAPIServer(t, notFound)
		load, stop := start(t, connectAll(t, record, server), Options{QPS: 5000, Seed: 3, ReadOnly: readOnly, Profile: profile}, nil)
		load.SetProbes(Classify(recordedDocuments(t)))
		seen := func() map[string]int {
			count := map[string]int{}
			for _, op := range record.all() {
				count[op.Verb]++
				for _, s := range connecting {
					if readOnly && strings.HasSuffix(op.Path, "/"+s) {
						t.Errorf("a connection is asked for: %s", op.Path)
					}
				}
			}
			return count
		}
		until(t, "250 operations", func() bool { return len(record.all()) >= 250 })
		stop()
		return seen()
	}
	for _, profile := range []Profile{ProfileGeneral, ProfileWatches, ProfileSubresources, ProfileDiscovery} {
		for verb, n := range methods(profile, true) {
			switch verb {
			case "get", "list", "watch", history.VerbTable, history.VerbDiscovery, history.VerbNoPeer, history.VerbOpenAPI, history.VerbLegacy:
			default:
				t.Errorf("profile %q: %d requests with the verb %q", profile, n, verb)
			}
		}
	}
	usual := methods(ProfileGeneral, false)
	if usual["create"]+usual["patch"]+usual["delete"] == 0 {
		t.Error("without the switch there is no write: this test would prove nothing")
	}
}

func TestReadOnlySweepOnlyReads(t *testing.T) {
	record := newLedger()
	clients := connectAll(t, record, newAPIServer(t, notFound))
	doc := history.Document{Resources: []history.Resource{configMaps()}}
	if _, err := Sweep(t.Context(), clients, doc, SweepOptions{Verbs: ReadVerbs}); err != nil {
		t.Fatal(err)
	}
	if len(record.all()) != len(ReadVerbs) {
		t.Errorf("%d requests, want one for each of %v", len(record.all()), ReadVerbs)
	}
	for _, op := range record.all() {
		if !slices.Contains(ReadVerbs, op.Verb) {
			t.Errorf("%s %s does not read", op.Verb, op.Path)
		}
	}
}

// What is left of the probes must not tempt: no verb that writes, and no resource that could only be written to.
func TestReadableKeepsWhatCanBeRead(t *testing.T) {
	pods := history.Resource{
		GVR: history.GVR{Version: "v1", Resource: "pods"}, Verbs: []string{"create", "get", "list"},
		Subresources: []history.Subresource{
			{Name: "exec", Verbs: []string{"create", "get"}}, {Name: "status", Verbs: []string{"get", "patch"}}, {Name: "eviction", Verbs: []string{"create"}},
		},
	}
	review := history.Resource{GVR: history.GVR{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}, Verbs: []string{"create"}}
	got := readable([]Probe{
		{Resource: pods, Class: Everywhere}, {Resource: review, Class: Somewhere}, {Resource: pods, Class: Somewhere, Subresource: "eviction"},
		{Resource: pods, Class: Somewhere, Subresource: "status"}, {Resource: pods, Class: Nowhere, Subresource: unknownSubresource},
	})
	if len(got) != 3 || got[0].Subresource != "" || got[1].Subresource != "status" || got[2].Subresource != unknownSubresource {
		t.Fatalf("left over: %+v", got)
	}
	left := got[0].Resource
	if len(left.Verbs) != 2 || len(left.Subresources) != 1 || left.Subresources[0].Name != "status" || len(left.Subresources[0].Verbs) != 1 {
		t.Errorf("of pods there is left: %+v", left)
	}
	if len(pods.Verbs) != 3 || len(pods.Subresources) != 3 {
		t.Error("the resource that was given was changed")
	}
}
