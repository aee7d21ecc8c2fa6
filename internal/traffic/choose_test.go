package traffic

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// ask sends the next n requests of a chooser, one after the other, to a server that answers 404 to everything, and
// returns them as recorded.
func ask(t *testing.T, seed uint64, probes []Probe, n int) []history.Operation {
	t.Helper()
	server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, "text/plain", "404 page not found\n")
	})
	record := newLedger()
	c := connect(t, server, record)
	choose := newChooser("a", rand.New(rand.NewPCG(seed, 0)), DefaultMix)
	choose.use(probes)
	for range n {
		request := choose.next()
		request.send(withOrigin(t.Context(), request.client, history.PurposeLoad), c)
	}
	return record.all()
}

func TestChoicesFollowTheMix(t *testing.T) {
	const n = 4000
	probes := Classify(recordedDocuments(t))
	class := map[string]Class{}
	for _, p := range probes {
		key := p.Resource.String()
		if p.Subresource != "" {
			key += "/" + p.Subresource
		}
		class[key] = p.Class
	}
	count := map[Class]int{}
	clients := map[string]int{}
	for _, op := range ask(t, 1, probes, n) {
		key := op.GVR.String()
		if c, ok := class[key+"/"+op.Subresource]; ok && op.Subresource != "" {
			count[c]++
		} else {
			count[class[key]]++ // "" is discovery
		}
		clients[op.Client]++
	}
	for _, tt := range []struct {
		class Class
		share int
	}{
		{Somewhere, DefaultMix.Somewhere}, {Nowhere, DefaultMix.Nowhere}, {"", DefaultMix.Discovery},
		{Everywhere, 100 - DefaultMix.Somewhere - DefaultMix.Nowhere - DefaultMix.Discovery},
	} {
		if got := 100 * float64(count[tt.class]) / n; got < float64(tt.share)-3 || got > float64(tt.share)+3 {
			t.Errorf("class %q has %.1f %% of the requests, want about %d %%", tt.class, got, tt.share)
		}
	}
	for _, name := range []string{ClientTyped, ClientDynamic, ClientREST} {
		if clients[name] < n/100 {
			t.Errorf("client %q sent %d of %d requests", name, clients[name], n)
		}
	}
}

func TestChoicesVisitEverything(t *testing.T) {
	probes := Classify(recordedDocuments(t))
	visited := map[string]map[string]bool{}
	paths := map[string]bool{}
	patches := map[string]bool{}
	for _, op := range ask(t, 2, probes, 5000) {
		key := op.GVR.String()
		if visited[key] == nil {
			visited[key] = map[string]bool{}
		}
		visited[key][op.Verb] = true
		if op.Verb == "patch" {
			patches[op.Subresource] = true
		}
		if op.GVR.Resource == "" {
			path := op.Path
			if strings.HasPrefix(path, "/apis/") {
				path = "/apis/…"
			}
			paths[path] = true
		}
	}
	for _, p := range probes {
		verbs := visited[p.Resource.String()]
		for _, want := range []string{"list", "get", "watch"} {
			if p.Subresource == "" && slices.Contains(p.Resource.Verbs, want) && !verbs[want] {
				t.Errorf("%s was never asked for by %q, only by %v", p.Resource.GVR, want, slices.Sorted(maps.Keys(verbs)))
			}
		}
		if len(verbs) == 0 {
			t.Errorf("%s was never asked for", p.Resource.GVR)
		}
	}
	for _, want := range []string{"/apis", "/api", "/apis/…"} {
		if !paths[want] {
			t.Errorf("discovery at %s was never asked for", want)
		}
	}
	for _, want := range []string{"", "scale", "status"} {
		if !patches[want] {
			t.Errorf("subresource %q was never patched", want)
		}
	}
	verbs := visited["v1/configmaps"]
	for _, want := range []string{"list", "table", "get", "create", "update", "patch", "delete", "watch"} {
		if !verbs[want] {
			t.Errorf("config maps were never asked for by %q", want)
		}
	}
}

func TestChoicesDependOnTheSeedOnly(t *testing.T) {
	probes := Classify(recordedDocuments(t))
	trace := func(seed uint64) []string {
		var lines []string
		for _, op := range ask(t, seed, probes, 300) {
			lines = append(lines, op.Client+" "+op.Verb+" "+op.Path)
		}
		return lines
	}
	first := trace(7)
	if again := trace(7); !slices.Equal(first, again) {
		t.Error("the same seed made other choices")
	}
	if other := trace(8); slices.Equal(first, other) {
		t.Error("another seed made the same choices")
	}
}

func TestChoicesWithoutProbesAreDiscovery(t *testing.T) {
	for _, op := range ask(t, 1, nil, 50) {
		if op.GVR != (history.GVR{}) {
			t.Fatalf("nothing is known to be served, but %s was asked for", op.Path)
		}
	}
}

// TestWritesStayInTheRunsOwnNamespace: whatever is written outside of it is an object of ours, one that does not exist,
// or a dry run.
func TestWritesStayInTheRunsOwnNamespace(t *testing.T) {
	for _, op := range ask(t, 3, Classify(recordedDocuments(t)), 4000) {
		switch op.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
		default:
			continue
		}
		ours := op.Namespace == Namespace || strings.HasPrefix(op.Name, "skewproof-")
		created := op.Verb == "create" && slices.ContainsFunc([]string{"volumeattributesclasses", "devicetaintrules", "storageversionmigrations"},
			func(r string) bool { return op.GVR.Resource == r })
		if !ours && !created && !strings.Contains(op.Path, "dryRun=All") {
			t.Errorf("%s %s is no business of ours", op.Verb, op.Path)
		}
	}
}

func TestMixIsChecked(t *testing.T) {
	for _, m := range []Mix{{Somewhere: -1}, {Nowhere: 101}, {Somewhere: 50, Nowhere: 50, Discovery: 1}} {
		if m.check() == nil {
			t.Errorf("%+v was accepted", m)
		}
	}
	if err := DefaultMix.check(); err != nil {
		t.Error(err)
	}
}
