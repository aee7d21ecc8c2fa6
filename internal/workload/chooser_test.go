package workload

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// recordedDocuments are discovery documents recorded from two releases.
func recordedDocuments(t testing.TB) map[string]history.Document {
	t.Helper()
	read := func(name string) history.Document {
		body, err := os.ReadFile("../answer/testdata/discovery/" + name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := answer.ParseDiscovery(body)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	core := read("api.json")
	docs := map[string]history.Document{}
	for server, file := range map[string]string{"old": "v1.36.3.apis.json", "new": "v1.37.1.apis.json"} {
		doc := read(file)
		doc.Resources = slices.Concat(core.Resources, doc.Resources)
		docs[server] = doc
	}
	return docs
}

// chosen returns the next n requests of a chooser with recorded documents.
func chosen(t *testing.T, seed uint64, n int, o Options) []Request {
	t.Helper()
	o.Lane, o.Choices = "a", rand.New(rand.NewPCG(seed, 0))
	c := NewChooser(o)
	c.Use(Classify(recordedDocuments(t)))
	all := make([]Request, n)
	for i := range all {
		all[i] = c.Next()
	}
	return all
}

// percent returns the share of requests of a kind.
func percent(all []Request, of func(*Request) bool) int {
	n := 0
	for i := range all {
		if of(&all[i]) {
			n++
		}
	}
	return 100 * n / max(1, len(all))
}

func writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

func TestChoicesFollowTheMix(t *testing.T) {
	class := map[string]Class{}
	for _, p := range Classify(recordedDocuments(t)) {
		class[p.Resource.String()+"/"+p.Subresource] = p.Class
	}
	all := chosen(t, 1, 4000, Options{})
	classOf := func(r *Request) Class {
		if c, ok := class[r.GVR.String()+"/"+r.Subresource]; ok && r.Path == "" {
			return c
		}
		return class[r.GVR.String()+"/"] // "" is discovery
	}
	for want, share := range map[Class]int{
		Somewhere: DefaultMix.Somewhere, Nowhere: DefaultMix.Nowhere, "": DefaultMix.Discovery,
		Everywhere: 100 - DefaultMix.Somewhere - DefaultMix.Nowhere - DefaultMix.Discovery,
	} {
		if got := percent(all, func(r *Request) bool { return classOf(r) == want }); got < share-3 || got > share+3 {
			t.Errorf("class %q has %d %% of the requests, want about %d %%", want, got, share)
		}
	}
	for _, name := range []string{ClientTyped, ClientDynamic, ClientREST} {
		if percent(all, func(r *Request) bool { return r.Sender() == name }) < 1 {
			t.Errorf("client %q sends next to none of the requests", name)
		}
	}
	for _, user := range Users() {
		if got := percent(all, func(r *Request) bool { return r.User == user }); got < 30 || got > 37 {
			t.Errorf("%q asks for %d %%, want a third", user, got)
		}
	}
}

func TestChoicesVisitEverything(t *testing.T) {
	visited := map[string]map[string]bool{}
	paths, patched := map[string]bool{}, map[string]bool{}
	for _, r := range chosen(t, 2, 5000, Options{}) {
		key := r.GVR.String()
		if visited[key] == nil {
			visited[key] = map[string]bool{}
		}
		visited[key][r.Verb] = true
		patched[r.Subresource] = patched[r.Subresource] || r.Verb == "patch"
		if strings.HasPrefix(r.Path, "/apis/") {
			r.Path = "/apis/…"
		}
		paths[r.Path] = true
	}
	for _, p := range Classify(recordedDocuments(t)) {
		verbs := visited[p.Resource.String()]
		for _, want := range []string{"list", "get", "watch"} {
			if p.Subresource == "" && slices.Contains(p.Resource.Verbs, want) && !verbs[want] {
				t.Errorf("%s is never asked for by %q, only by %v", p.Resource.GVR, want, slices.Sorted(maps.Keys(verbs)))
			}
		}
		if len(verbs) == 0 {
			t.Errorf("%s is never asked for", p.Resource.GVR)
		}
	}
	for _, want := range []string{"/apis", "/api", "/apis/…"} {
		if !paths[want] {
			t.Errorf("discovery at %s is never asked for", want)
		}
	}
	for _, want := range []string{"", "scale", "status"} {
		if !patched[want] {
			t.Errorf("subresource %q is never patched", want)
		}
	}
	for _, want := range []string{"list", "table", "get", "create", "update", "patch", "delete", "watch"} {
		if !visited["v1/configmaps"][want] {
			t.Errorf("config maps are never asked for by %q", want)
		}
	}
}

func TestChoicesDependOnTheSeedOnly(t *testing.T) {
	for _, profile := range scenario.Traffics {
		o := Options{Profile: profile}
		first := chosen(t, 7, 300, o)
		if !slices.Equal(first, chosen(t, 7, 300, o)) {
			t.Errorf("profile %q: the same seed makes other choices", profile)
		}
		if slices.Equal(first, chosen(t, 8, 300, o)) {
			t.Errorf("profile %q: another seed makes the same choices", profile)
		}
	}
}

// zeros always chooses 0, like a tape of the simulator after its end.
type zeros struct{}

func (zeros) IntN(int) int { return 0 }

func TestChoicesOfZerosStillAreRequests(t *testing.T) {
	for _, profile := range scenario.Traffics {
		c := NewChooser(Options{Lane: "a", Choices: zeros{}, Profile: profile, Can: func(r *Request) bool { return r.Path != "" }})
		c.Use(Classify(recordedDocuments(t)))
		for range 300 {
			if r := c.Next(); r.Method() == "" || r.Path == "" {
				t.Fatalf("profile %q: %s cannot be sent", profile, &r)
			}
		}
	}
}

func TestChoicesWithoutProbesAreDiscovery(t *testing.T) {
	c := NewChooser(Options{Lane: "a", Choices: rand.New(rand.NewPCG(1, 0))})
	for range 50 {
		if r := c.Next(); r.Path == "" {
			t.Fatalf("nothing is known to be served, but it asks to %s", &r)
		}
	}
}

// A write outside the run's own namespace must be on an object of the load, on an object that does
// not exist, or a dry run.
func TestWritesStayInTheRunsOwnNamespace(t *testing.T) {
	for _, profile := range scenario.Traffics {
		for _, r := range chosen(t, 3, 4000, Options{Profile: profile}) {
			ours := r.Namespace == Namespace || strings.HasPrefix(r.Name, "skewproof-")
			if writes(r.Verb) && !ours && !strings.Contains(r.Query, dryRun) {
				t.Errorf("profile %q: the load must not request %s", profile, &r)
			}
		}
	}
}

// Answers to requests with the same verb and URL are compared, so these requests must be equal. A
// write that is sent to every server must change nothing.
func TestComparedRequestsAreEqual(t *testing.T) {
	seen, verbs := map[string]Request{}, map[string]int{}
	for _, r := range chosen(t, 3, 8000, Options{}) {
		if r.Compare == "" {
			continue
		}
		verbs[r.Verb]++
		if writes(r.Verb) && !strings.Contains(r.Query, dryRun) {
			t.Errorf("%s changes the object at the first server", &r)
		}
		key := r.Verb + " " + r.URL().String()
		if before, ok := seen[key]; ok && (string(before.Payload()) != string(r.Payload()) || before.ContentType != r.ContentType) {
			t.Errorf("%s has the body %s, and before it had %s", &r, r.Payload(), before.Payload())
		}
		seen[key] = r
	}
	if verbs["get"] < 50 || verbs["patch"] < 10 {
		t.Errorf("%v are compared, want reads and writes", verbs)
	}
}

// An existing cluster must not even receive a request that would change something.
func TestReadOnlyOnlyReads(t *testing.T) {
	for _, profile := range []scenario.Traffic{
		scenario.GeneralTraffic, scenario.WatchTraffic, scenario.SubresourceTraffic, scenario.DiscoveryTraffic,
	} {
		for _, r := range chosen(t, 3, 2000, Options{Profile: profile, ReadOnly: true}) {
			if r.Method() != "GET" || slices.Contains(connecting, r.Subresource) {
				t.Errorf("profile %q: %s does more than read", profile, &r)
			}
		}
	}
	if percent(chosen(t, 3, 2000, Options{}), func(r *Request) bool { return writes(r.Verb) }) == 0 {
		t.Error("without the switch there is no write: this test would prove nothing")
	}
}

// If a profile shifted no weight, its scenario could pass without a request of its kind.
func TestProfilesShiftTheWeight(t *testing.T) {
	general := chosen(t, 1, 2000, Options{})
	for profile, kind := range map[scenario.Traffic]struct {
		least int // percent
		of    func(*Request) bool
	}{
		scenario.WatchTraffic:       {35, func(r *Request) bool { return r.Verb == "watch" }},
		scenario.SubresourceTraffic: {30, func(r *Request) bool { return r.Subresource != "" }},
		scenario.FormatTraffic:      {25, func(r *Request) bool { return answer.Accepted(r.Header().Get("Accept")) != "" }},
		scenario.DiscoveryTraffic:   {10, func(r *Request) bool { return r.Path != "" }},
		scenario.UpgradeTraffic:     {8, func(r *Request) bool { return r.Upgrade }},
		scenario.LargeListTraffic:   {3, func(r *Request) bool { return r.Then == ThenPages }},
		scenario.HostileTraffic:     {hostileShare - 4, func(r *Request) bool { return r.Sender() == ClientForger }},
	} {
		got, usual := percent(chosen(t, 1, 2000, Options{Profile: profile}), kind.of), percent(general, kind.of)
		if got < kind.least || got <= usual {
			t.Errorf("%q: %d %% of its requests are of its kind, and %d %% of the general load; want at least %d %%", profile, got, usual,
				kind.least)
		}
	}
	if got := Rate(scenario.SparseTraffic, 200); got != 2 {
		t.Errorf("a sparse load has %v requests a second, want a hundredth of 200", got)
	}
}

// Upgrades to both protocols are requested, for watches and for connections to pods.
func TestBothKindsOfUpgradesAreAskedFor(t *testing.T) {
	asked := map[string]int{}
	for _, r := range chosen(t, 1, 4000, Options{Profile: scenario.UpgradeTraffic}) {
		if r.Upgrade {
			asked[r.Sender()+" "+r.Verb]++
		}
	}
	for _, kind := range []string{"websocket watch", "websocket get", "spdy watch", "spdy get"} {
		if asked[kind] == 0 {
			t.Errorf("no request by %s; requests: %v", kind, asked)
		}
	}
}

// Every media type is requested, every type of patch is sent, and every forgery is tried.
func TestFormatsAndForgeriesAreAllTried(t *testing.T) {
	sent, forged := map[string]bool{}, map[string]bool{}
	for _, r := range chosen(t, 1, 1500, Options{Profile: scenario.FormatTraffic}) {
		h := r.Header()
		sent[h.Get("Accept")], sent[h.Get("Content-Type")] = true, true
	}
	for _, b := range slices.Concat(created, patches) {
		if !sent[b.mediaType] {
			t.Errorf("nothing is sent as %s", b.mediaType)
		}
	}
	for _, a := range accepted {
		if !sent[a] {
			t.Errorf("nobody accepts %s", a)
		}
	}
	for _, r := range chosen(t, 1, 1500, Options{Profile: scenario.HostileTraffic}) {
		forged[r.Forged] = true
		if r.Forged != "" && r.ForgedHeader() == nil {
			t.Fatalf("there is no forgery %q", r.Forged)
		}
	}
	for _, name := range ForgeryNames() {
		if !forged[name] {
			t.Errorf("nobody forges %q", name)
		}
	}
}

// Requests go to other people's servers, so the headers that only servers may send have their plain
// form: one short value each, "true" for a hop, and no other header says anything about them.
func TestForgedHeadersArePlain(t *testing.T) {
	for _, profile := range scenario.Traffics {
		for _, r := range chosen(t, 2, 1500, Options{Profile: profile}) {
			for name, values := range r.ForgedHeader() {
				hop := strings.HasPrefix(name, "X-Kubernetes-")
				if len(values) != 1 || len(values[0]) > 20 || hop && values[0] != "true" || !hop && !strings.HasPrefix(name, "X-Remote-") && name != "X-Skewproof-Refused" {
					t.Fatalf("%q: %s sends %s: %q", profile, r.Forged, name, values)
				}
			}
		}
	}
}

func TestALargeListIsMadeOnceAndOnlyListed(t *testing.T) {
	made, whole, paged := 0, 0, 0
	for _, r := range chosen(t, 1, 1000, Options{Profile: scenario.LargeListTraffic}) {
		switch {
		case r.GVR.Resource != "devicetaintrules":
		case r.Then == ThenPages && strings.Contains(r.Query, "limit="):
			paged++
		case r.Then == ThenPages:
			whole++
		case r.Verb == "create" && !strings.Contains(r.Query, dryRun):
			made++
			if r.User != Admin || !strings.Contains(r.Body, LargeListLabel) || len(r.Body) < padding {
				t.Errorf("%s as %s, body %s", &r, r.User, r.Body)
			}
		}
	}
	if made != LargeListPerLane {
		t.Errorf("%d objects are made, want %d and nothing else of that resource", made, LargeListPerLane)
	}
	if whole < 10 || paged < 10 {
		t.Errorf("%d lists are whole and %d in pages, want ten of each", whole, paged)
	}
}

// The chooser chooses no request that the sender cannot send.
func TestOnlyWhatCanBeSentIsChosen(t *testing.T) {
	describes := func(r *Request) bool { return r.Verb == history.VerbOpenAPI }
	if !slices.ContainsFunc(chosen(t, 1, 4000, Options{Profile: scenario.DiscoveryTraffic}), func(r Request) bool { return describes(&r) }) {
		t.Fatal("no request is for OpenAPI, so this test would prove nothing")
	}
	can := func(r *Request) bool { return !describes(r) }
	for _, r := range chosen(t, 1, 4000, Options{Profile: scenario.DiscoveryTraffic, Can: can}) {
		if describes(&r) {
			t.Fatalf("%s was chosen", &r)
		}
	}
}
