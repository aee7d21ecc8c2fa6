package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// sample sets every field of every record, so that the test detects a field that is not saved.
func sample() *History {
	used := int64(3)
	document := Document{Hash: "sha256:1", Bytes: 7, Resources: []Resource{{
		GVR: GVR{"apps", "v1", "deployments"}, Kind: "Deployment", Namespaced: true, Verbs: []string{"get"},
		Subresources: []Subresource{{Name: "scale", Kind: "Scale", Verbs: []string{"update"}}},
	}}}
	return &History{
		Run: Run{
			Schema: SchemaVersion, Scenario: "rolling-upgrade", Sentence: "Upgrades.", Backend: "local", Subject: "builtin", External: true, Unnamed: []string{"cp-3"}, From: "v1.36.3",
			To: "v1.37.1", Seed: 7, QPS: 200, StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
			Servers: []Server{{Name: "a", ID: "apiserver-x", Version: "v1.36.3", Address: "10.0.0.1:6443", Args: []string{"--v=2"}, ProxyArgs: []string{"proxy", "--v=1"}}, {Name: "b", Version: "v1.37.1"}},
			About:   []string{"NoLoop"}, Control: []string{"NoLoop"}, Pressure: Pressure{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}, Bounds: DefaultBounds, Reproduce: "skewproof run", Environment: []string{"linux <amd64>"},
			Own: &OwnFlags{RuntimeConfig: new("api/ga=true"), Flags: []string{"v=4"}}, Label: "a patch", Unjudged: "no load was sent", Binaries: []Binary{{Component: "etcd", Version: "v3.6.8", Says: "etcd Version: 3.6.8", SHA256: "0a", Own: true}},
		},
		Operations: []Operation{{ID: "1", Start: 1, End: 2,
			Sent:     &Sent{Purpose: PurposeLoad, Client: "dynamic", User: "jane", Impersonator: "admin", Server: "a", Verb: "update", GVR: GVR{"apps", "v1", "deployments"}, Subresource: "scale", Namespace: "n", Name: "x", Path: "/apis/…?a=b&c", Rerouted: true, Accept: "a/b", ContentType: "a/b"},
			Received: &Received{Status: 404, Reason: "NotFound", Message: "m", Body: BodyStatus, Content: ContentWhole, Missing: MissingObject, RetryAfter: "1", Failure: FailureReset, Error: "EOF", Events: 3, Items: 4, More: true, MediaType: "a/b", ETag: `"e"`, Document: "sha256:1"}}},
		Hops: []Hop{{Operation: "1", Start: 1, End: 2,
			Entry: &Entry{Server: "a", Status: 404, User: "admin", Groups: "g", UID: "u", Extra: "x", Unauthenticated: "no", Rerouted: true, From: "b", Altered: "path"}}},
		Steps: []Step{{Index: 1, Sentence: "cut", Start: 3, End: 4, Error: "no", Refused: "its names are taken", Effect: "etcd compacted", Disturbs: true,
			Defined: &Definition{Group: "g", Resource: "r", Versions: []string{"v1"}}, LeaseOf: "a", Discovery: DiscoveryGranted}},
		Faults:    []Fault{{ID: 1, Kind: "cut", From: "a", To: "b", Server: "c", Blocks: true, Detail: "d", Distrust: DistrustServing, Start: 3, End: 4, Evidence: Evidence{1, 2, 3, 4, 5, 6, 7}}},
		Lifecycle: []Lifecycle{{Server: "a", Incarnation: 1, Version: "v1.36.3", Emulates: "1.35", Reports: "1.35", State: StateReady, At: 1, Detail: "d"}},
		Served:    []Served{{Server: "a", Incarnation: 1, At: 2, Confirmed: 1, Document: "sha256:1"}},
		Effects: []Effect{{
			Server: "a", Incarnation: 1, At: 8, Setup: "s", Certificate: "c", Advertised: "10.0.0.1:6443", Dials: []Dial{{From: "b", Address: "10.0.0.1:6443", Connections: 2}},
		}},
		Configurations: []Configuration{{
			Server: "a", Incarnation: 1, At: 1, Setup: "s", Proxy: ProxyOwn, PeerCA: "ca.crt", PeerIP: "10.0.0.1", PeerPort: "6443", AdvertiseIP: "10.0.0.1", Port: "6443",
			Emulates: "1.35", Without: []string{"batch/v1"}, SharesHost: "b",
		}},
		Leases:     []Lease{{Server: "a", Incarnation: 1, First: 1, Last: 2, Advertised: "10.0.0.1:6443"}},
		SlowProbes: []SlowProbe{{Server: "a", Start: 1, End: 5, Queued: 3}},
		Crowds:     []Crowd{{Server: "a", Start: 1, End: 5, Watches: 4, Failed: 1, Problem: "p", Resources: []string{"/apis/x"}}},
		Counted:    []Counted{{Server: "a", Incarnation: 1, At: 6, Rerouted: []Rerouted{{Code: "200", GVR: GVR{"apps", "v1", "deployments"}, Together: true, Count: 3}}}},
		Objects: []Object{{
			Revision: 7, At: 3, Key: "/registry/configmaps/n/x", Gone: true, APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "x", UID: "u",
			Deleting: true, Finalizers: []string{"f"}, Owners: []Owner{{"v1", "Pod", "p", "v", true, true}}, Conditions: []string{"NamespaceContentRemaining"},
			Counts: []Count{{"apps", "deployments", &used}}, Holder: "kcm-b_1", Migrates: &GVR{Group: "apps", Resource: "deployments", Version: "v1"}, Fields: []string{"data.x"},
			Generation: 2, Replicas: &used, Ended: true,
		}},
		Requests: []Request{{
			ID: "2", Server: "a", Start: 1, End: 2, Status: 404, User: "u", Agent: "kubectl/v1.37.1", Verb: "get", GVR: GVR{"apps", "v1", "deployments"},
			Subresource: "scale", Namespace: "n", Name: "x", Path: "/apis/…", Rerouted: true, Own: true,
		}},
		Written: []Written{{ID: "2", Lost: []string{"spec.x"}}},
		Deliveries: []Delivery{{
			Informer: "apps/v1/deployments through a", Index: 1, Server: "a", GVR: GVR{"apps", "v1", "deployments"}, At: 3, Kind: DeliveryAdded, ResourceVersion: "7",
			Objects: []Version{{Namespace: "n", Name: "x", UID: "u", ResourceVersion: "7"}}, Status: 503, Message: "m",
		}},
		Documents: map[string]Document{document.Hash: document},
		End:       End{At: 9, Error: "step 3: no", Complete: true},
	}
}

func recordAll(h *History, r *Recorder) {
	for _, s := range h.Served {
		r.Served(s, h.Documents[s.Document])
	}
	for _, o := range h.Operations {
		r.Operation(o)
	}
	for _, hop := range h.Hops {
		r.Hop(hop)
	}
	for _, e := range h.Effects {
		r.Effect(e)
	}
	for _, c := range h.Configurations {
		r.Configuration(c)
	}
	for _, l := range h.Leases {
		r.Lease(l)
	}
	for _, c := range h.Crowds {
		r.Crowd(c)
	}
	for _, c := range h.Counted {
		r.Counted(c)
	}
	for _, l := range h.SlowProbes {
		r.SlowProbe(l)
	}
	for _, o := range h.Objects {
		r.Object(o)
	}
	for _, q := range h.Requests {
		r.Request(q)
	}
	for _, w := range h.Written {
		r.Written(w)
	}
	for _, d := range h.Deliveries {
		r.Delivery(d)
	}
	for _, s := range h.Steps {
		r.Step(s)
	}
	for _, f := range h.Faults {
		r.Fault(f)
	}
	for _, l := range h.Lifecycle {
		r.Lifecycle(l)
	}
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecorder(f, want.Run, func() Time { return want.End.At })
	recordAll(want, r)
	if err := r.Close(errors.New(want.End.Error)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwritten\n%+v", got, want)
	}
	assertFilled(t, reflect.ValueOf(*want), "history")
}

// assertFilled fails for fields that the sample leaves at zero, because the test could not detect
// their loss.
func assertFilled(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			if v.Field(i).IsZero() {
				t.Errorf("the sample leaves %s at zero", name)
			}
			assertFilled(t, v.Field(i), name)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			assertFilled(t, v.Index(0), path)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			assertFilled(t, v.MapIndex(k), path)
		}
	}
}

// readBack closes a recorder, and reads what it wrote.
func readBack(t *testing.T, r *Recorder, written *bytes.Buffer) *History {
	t.Helper()
	if err := r.Close(nil); err != nil {
		t.Fatal(err)
	}
	h, err := Read(written)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestReadSortsByTime(t *testing.T) {
	var b bytes.Buffer
	r := NewRecorder(&b, sample().Run, func() Time { return 9 })
	r.Operation(Operation{ID: "late", Start: 5, End: 6, Sent: &Sent{Server: "a"}, Received: &Received{}})
	r.Operation(Operation{ID: "b", Start: 1, End: 2, Sent: &Sent{Server: "a"}, Received: &Received{}})
	r.Operation(Operation{ID: "a", Start: 1, End: 2, Sent: &Sent{Server: "a"}, Received: &Received{}})
	r.Lifecycle(Lifecycle{Server: "a", State: StateReady, At: 2})
	r.Lifecycle(Lifecycle{Server: "a", State: StateStarting, At: 1})
	h := readBack(t, r, &b)
	if ids := h.Operations[0].ID + h.Operations[1].ID + h.Operations[2].ID; ids != "ablate" {
		t.Errorf("operations in the order %q", ids)
	}
	if h.Lifecycle[0].State != StateStarting {
		t.Errorf("first state %q", h.Lifecycle[0].State)
	}
}

func TestRecorderWritesADocumentOnce(t *testing.T) {
	var b bytes.Buffer
	r := NewRecorder(&b, sample().Run, nil)
	d := sample().Documents["sha256:1"]
	if r.HasDocument(d.Hash) {
		t.Error("a document is there before it was recorded")
	}
	r.Document(d)
	r.Served(Served{Server: "a"}, d)
	if !r.HasDocument(d.Hash) {
		t.Error("the document is not there")
	}
	if err := r.Close(nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), `{"document":`); n != 1 {
		t.Errorf("the document was written %d times", n)
	}
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	const clients, each = 8, 100
	var b bytes.Buffer
	r := NewRecorder(&b, sample().Run, nil)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				r.Operation(Operation{Start: r.Now(), End: Forever, Sent: &Sent{Server: "a"}, Received: &Received{}})
			}
		})
	}
	wg.Wait()
	if got := r.Asked("a"); got != clients*each || r.Asked("b") != 0 {
		t.Errorf("a was asked %d times, b %d times", got, r.Asked("b"))
	}
	h := readBack(t, r, &b)
	if len(h.Operations) != clients*each {
		t.Errorf("read %d operations of %d", len(h.Operations), clients*each)
	}
}

// full is a disk with room for a limited number of bytes.
type full struct{ room int }

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if f.room < len(p) {
		return 0, errFull
	}
	f.room -= len(p)
	return len(p), nil
}

func TestRecorderKeepsTheFirstWriteError(t *testing.T) {
	for _, room := range []int{0, 64 << 10, 256 << 10} {
		r := NewRecorder(&full{room}, sample().Run, nil)
		for range 10_000 {
			r.Operation(Operation{Sent: &Sent{Server: "a", Path: strings.Repeat("x", 100)}, Received: &Received{}})
		}
		if err := r.Err(); !errors.Is(err, errFull) {
			t.Errorf("room %d: Err: %v", room, err)
		}
		if err := r.Close(nil); !errors.Is(err, errFull) {
			t.Errorf("room %d: Close: %v", room, err)
		}
	}
}

func TestCloseReportsWhatCouldNotBeFlushed(t *testing.T) {
	r := NewRecorder(&full{0}, sample().Run, nil)
	if err := r.Err(); err != nil {
		t.Errorf("before anything was flushed: %v", err)
	}
	if err := r.Close(nil); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	}
}
