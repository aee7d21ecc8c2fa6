package traffic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/skewproof/skewproof/internal/history"
)

// askIn sends the next n requests of a chooser of a profile to a server, and returns them as recorded.
func askIn(t *testing.T, profile Profile, n int, handler http.HandlerFunc) []history.Operation {
	t.Helper()
	record := newLedger()
	c := connect(t, newAPIServer(t, handler), record)
	options := Options{Profile: profile, QPS: 1}
	options.adapt()
	if options.Mix == (Mix{}) {
		options.Mix = DefaultMix
	}
	choose := newChooser("a", rand.New(rand.NewPCG(1, 0)), options.Mix)
	choose.profile = profile
	choose.use(Classify(recordedDocuments(t)))
	for range n {
		request := choose.next()
		request.send(withOrigin(t.Context(), request.client, history.PurposeLoad), c)
	}
	return record.all()
}

func share(all []history.Operation, of func(history.Operation) bool) int {
	n := 0
	for _, op := range all {
		if of(op) {
			n++
		}
	}
	return 100 * n / max(1, len(all))
}

// A profile that shifted no weight would let its scenario pass without a word of what it is about.
func TestProfilesShiftTheWeight(t *testing.T) {
	plain := askIn(t, ProfileGeneral, 300, notFound)
	for profile, kind := range map[Profile]struct {
		least int // percent
		of    func(history.Operation) bool
	}{
		ProfileWatches:      {35, func(op history.Operation) bool { return op.Verb == "watch" }},
		ProfileSubresources: {30, func(op history.Operation) bool { return op.Subresource != "" }},
		ProfileFormats:      {25, func(op history.Operation) bool { return op.Accept != "" }},
		ProfileDiscovery:    {10, func(op history.Operation) bool { return op.GVR == history.GVR{} }},
		ProfileUpgrades:     {8, func(op history.Operation) bool { return op.Client == ClientSocket }},
	} {
		t.Run(string(profile), func(t *testing.T) {
			got := share(askIn(t, profile, 300, notFound), kind.of)
			if general := share(plain, kind.of); got < kind.least || got <= general {
				t.Errorf("%d %% of its requests are of its kind, and %d %% of the general load; want at least %d %%", got, general, kind.least)
			}
		})
	}
}

func TestAProfileThatThereIsNotIsRefused(t *testing.T) {
	if _, err := NewLoad(&Clients{}, Options{Profile: "loud"}); err == nil || !strings.Contains(err.Error(), `"loud"`) {
		t.Errorf("got %v", err)
	}
	load, err := NewLoad(&Clients{}, Options{Profile: ProfileSparse, QPS: 200})
	if err != nil || load.options.QPS != 2 {
		t.Errorf("a sparse load has %v requests a second, %v; want a hundredth of 200", load.options.QPS, err)
	}
}

// Every media type is asked for, and every type of patch is sent.
func TestFormatsAreAllTried(t *testing.T) {
	sent := map[string]bool{}
	askIn(t, ProfileFormats, 1500, func(w http.ResponseWriter, r *http.Request) {
		sent[r.Header.Get("Accept")], sent[r.Header.Get("Content-Type")] = true, true
		notFound(w, r)
	})
	for _, b := range slices.Concat(created, patches) {
		if !sent[b.mediaType] {
			t.Errorf("nothing was sent as %s", b.mediaType)
		}
	}
	for _, a := range accepted {
		if !sent[a] {
			t.Errorf("nobody accepted %s", a)
		}
	}
}

// What lists are compared by is their length over all pages.
func TestAHerdIsListedWholeAndInPages(t *testing.T) {
	const size = 100
	made, labelled := 0, 0
	all := askIn(t, ProfileLargeLists, 1000, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "devicetaintrules") && !q.Has("dryRun"):
			made++
			answer(w, http.StatusCreated, mediaJSON, `{"kind":"X","apiVersion":"x/v1","metadata":{"name":"x"}}`)
		case q.Has("labelSelector") && q.Get("labelSelector") == herdLabel+"=yes":
			labelled++
			from, _ := strconv.Atoi(q.Get("continue"))
			to, next := size, ""
			if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && from+limit < size {
				to, next = from+limit, strconv.Itoa(from+limit)
			}
			items := strings.TrimSuffix(strings.Repeat(`{"metadata":{}},`, to-from), ",")
			answer(w, http.StatusOK, mediaJSON, fmt.Sprintf(`{"kind":"XList","apiVersion":"x/v1","metadata":{"continue":%q},"items":[%s]}`, next, items))
		default:
			notFound(w, r)
		}
	})
	if made != herdPerLane {
		t.Errorf("%d objects were made, want %d and nothing else of that resource", made, herdPerLane)
	}
	whole, paged := 0, 0
	for _, op := range all {
		if op.Verb != "list" || !strings.Contains(op.Path, "labelSelector=") {
			continue
		}
		switch {
		case op.More:
		case op.Items != size:
			t.Fatalf("%s is said to have %d objects, want %d", op.Path, op.Items, size)
		case strings.Contains(op.Path, "continue="):
			paged++
		default:
			whole++
		}
	}
	if whole < 10 || paged < 10 {
		t.Errorf("%d whole lists and %d in pages were made, want ten of each", whole, paged)
	}
}

func TestAnUpgradedWatchIsRecorded(t *testing.T) {
	upgrader := websocket.Upgrader{}
	record := newLedger()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/watched" {
			answer(w, http.StatusNotFound, mediaJSON, `{"kind":"Status","apiVersion":"v1","reason":"NotFound","message":"pods \"x\" not found","details":{"name":"x","kind":"pods"}}`)
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for range 3 {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{}`))
		}
		if r.URL.Query().Get("break") == "" {
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		}
	})
	c := connect(t, server, record)
	ctx := withOrigin(context.Background(), ClientSocket, history.PurposeLoad)
	upgraded("/watched", nil, 0).send(ctx, c)
	upgraded("/watched", map[string]string{"break": "yes"}, DefaultTimeout).send(ctx, c)
	upgraded("/none", nil, 0).send(ctx, c)
	all := record.all()
	if len(all) != 3 {
		t.Fatalf("%d operations were recorded, want 3", len(all))
	}
	if op := all[0]; op.Status != http.StatusSwitchingProtocols || op.Events != 3 || op.Failure != history.FailureNone || op.Client != ClientSocket {
		t.Errorf("a watch to its end: %+v", op)
	}
	if op := all[1]; op.Events != 3 || op.Failure != history.FailureReset {
		t.Errorf("a watch that was broken off long before it was to end: %+v", op)
	}
	if op := all[2]; op.Status != http.StatusNotFound || op.Missing != history.MissingObject {
		t.Errorf("what was not upgraded: %+v", op)
	}
}

// A status in YAML says as much as one in JSON: that an object is missing must not be taken for a missing resource.
func TestAStatusIsReadInWhateverForm(t *testing.T) {
	record := newLedger()
	c := connect(t, newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, mediaYAML, "kind: Status\napiVersion: v1\nreason: NotFound\nmessage: x not found\ndetails:\n  name: x\n  kind: pods\n")
	}), record)
	raw{path: "/api/v1/namespaces/n/pods/x", header: accept(mediaYAML)}.action().send(withOrigin(t.Context(), ClientREST, history.PurposeLoad), c)
	if op := record.only(t); op.Missing != history.MissingObject || op.Reason != "NotFound" || op.MediaType != mediaYAML || op.Accept != mediaYAML {
		t.Errorf("recorded %+v", op)
	}
}

func TestParseOpenAPI(t *testing.T) {
	doc, err := ParseOpenAPI([]byte(`{"paths":{"apis/apps/v1":{},"api/v1":{},"apis/apps":{},".well-known/x":{},"/apis/batch/v1/jobs":{},"/apis/batch/v1/":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range doc.Resources {
		got = append(got, r.Group+"/"+r.Version)
	}
	if want := []string{"/v1", "apps/v1", "batch/v1"}; !slices.Equal(got, want) {
		t.Errorf("it describes %q, want %q", got, want)
	}
	for _, bad := range []string{`{}`, `[`, `{"paths":{}}`} {
		if _, err := ParseOpenAPI([]byte(bad)); err == nil {
			t.Errorf("%s is taken for a description", bad)
		}
	}
}

// kubectl asks for the version that the merged document lists first.
func TestPreferredIsTheFirstVersion(t *testing.T) {
	list := []string{"list"}
	of := func(version, resource string, verbs []string) history.Resource {
		return history.Resource{GVR: history.GVR{Group: "g", Version: version, Resource: resource}, Verbs: verbs}
	}
	doc := history.Document{Resources: []history.Resource{of("v2", "things", list), of("v2", "reviews", []string{"create"}), of("v1", "things", list), of("v1", "others", list)}}
	seen := map[string]bool{}
	for which := range 10 {
		r, ok := preferred(doc, which)
		if !ok {
			t.Fatal("nothing can be listed")
		}
		seen[r.String()] = true
	}
	if len(seen) != 2 || !seen["g/v2/things"] || !seen["g/v1/others"] {
		t.Errorf("it takes %v, want the first version of each that can be listed", seen)
	}
}

func TestASleeperIsToldOfTheDocumentThatItHad(t *testing.T) {
	record := newLedger()
	body := discoveryBody(t)
	c := connect(t, newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if tag := r.Header.Get("If-None-Match"); tag == `"old"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"old"`)
		answer(w, http.StatusOK, acceptAggregated, body)
	}), record)
	ctx := withOrigin(t.Context(), ClientREST, history.PurposeLoad)
	for range 3 {
		sleeper(7).send(ctx, c)
	}
	all := record.all()
	if all[0].Status != 200 || all[1].Status != 304 || all[1].Document != all[0].Document || all[1].ETag != `"old"` {
		t.Errorf("recorded %+v", all)
	}
}

func discoveryBody(t *testing.T) string {
	t.Helper()
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"things","verbs":["list"]}]}]}]}`
}
