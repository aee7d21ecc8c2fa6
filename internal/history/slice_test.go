package history

import (
	"reflect"
	"testing"
	"time"
)

const sec = time.Second

// session is a history of two schedules. Server a is replaced between them. Server b is killed and
// started again in the first one.
func session() *History {
	doc := func(hash string) Document { return Document{Hash: hash} }
	life := func(server string, n int, version string, state State, at Time) Lifecycle {
		return Lifecycle{Server: server, Incarnation: n, Version: version, State: state, At: at}
	}
	return &History{
		Run: Run{Servers: []Server{{Name: "a", Version: "v1", Args: []string{"--x"}}, {Name: "b", Version: "v1", Args: []string{"--x"}}, {Name: "c", Version: "v1"}}, StartedAt: time.Unix(100, 0)},
		Lifecycle: []Lifecycle{
			life("a", 1, "v1", StateStarting, 1*sec), life("b", 1, "v1", StateStarting, 1*sec), life("a", 1, "v1", StateReady, 2*sec), life("b", 1, "v1", StateReady, 2*sec),
			life("b", 1, "v1", StateKilled, 5*sec), life("b", 2, "v1", StateStarting, 6*sec), life("b", 2, "v1", StateReady, 7*sec),
			life("a", 1, "v1", StateStopping, 8*sec), life("a", 1, "v1", StateStopped, 9*sec), life("a", 2, "v2", StateStarting, 9*sec), life("a", 2, "v2", StateReady, 10*sec),
			life("c", 1, "v1", StateStarting, 1*sec), life("c", 1, "v1", StateReady, 2*sec), life("c", 1, "v1", StateKilled, 3*sec),
			life("b", 1, "v1", StateCrashed, 13*sec), // noticed late
			life("b", 2, "v1", StateStopping, 14*sec), life("b", 2, "v1", StateStopped, 15*sec), life("b", 3, "v1", StateStarting, 16*sec), life("c", 2, "v1", StateStarting, 16*sec),
		},
		Served: []Served{
			{Server: "a", Incarnation: 1, At: 2 * sec, Document: "one"}, {Server: "b", Incarnation: 2, At: 7 * sec, Document: "one"}, {Server: "a", Incarnation: 2, At: 10 * sec, Document: "two"},
			{Server: "b", Incarnation: 2, At: 13 * sec, Confirmed: 9 * sec, Document: "three"}, {Server: "b", Incarnation: 2, At: 14 * sec, Confirmed: 13500 * time.Millisecond, Document: "two"},
		},
		Documents:      map[string]Document{"one": doc("one"), "two": doc("two"), "three": doc("three"), "asked": doc("asked")},
		Configurations: []Configuration{{Server: "a", Incarnation: 1, At: 1 * sec}, {Server: "a", Incarnation: 2, At: 9 * sec, PeerCA: "x"}, {Server: "b", Incarnation: 3, At: 16 * sec}},
		Leases:         []Lease{{Server: "a", Incarnation: 1, First: 3 * sec, Last: 8 * sec}, {Server: "a", Incarnation: 2, First: 11 * sec, Last: 30 * sec}},
		Effects:        []Effect{{Server: "a", Incarnation: 1, At: 8 * sec}, {Server: "b", Incarnation: 2, At: 14 * sec}},
		Operations: []Operation{
			{ID: "early", Start: 11 * sec, End: 13 * sec,
				Sent:     &Sent{Server: "a"},
				Received: &Received{}}, {ID: "in", Start: 12 * sec, End: 13 * sec, Sent: &Sent{Server: "a"},
				Received: &Received{Document: "asked"}}, {ID: "late", Start: 19 * sec, End: 21 * sec, Sent: &Sent{Server: "a"},
				Received: &Received{}},
			{ID: "after", Start: 20 * sec, End: 20 * sec, Sent: &Sent{Server: "a"}, Received: &Received{}},
		},
		Hops: []Hop{{Operation: "in", Start: 12 * sec, End: 25 * sec,
			Entry: &Entry{Server: "a"}}, {Operation: "early", Start: 11 * sec, End: 13 * sec, Entry: &Entry{Server: "a"}}},
		Written:    []Written{{ID: "q"}, {ID: "r"}},
		Requests:   []Request{{ID: "r", Server: "a", Start: 13 * sec, End: 30 * sec}, {ID: "q", Server: "a", Start: 3 * sec, End: 13 * sec}},
		Steps:      []Step{{Index: 0, Start: 3 * sec, End: 4 * sec}, {Index: 0, Start: 13 * sec, End: 22 * sec}},
		Faults:     []Fault{{ID: 1, Start: 3 * sec, End: 4 * sec}, {ID: 1, Start: 11 * sec, End: 13 * sec}, {ID: 2, Start: 13 * sec, End: Forever}},
		SlowProbes: []SlowProbe{{Server: "a", Start: 3 * sec, End: 4 * sec}, {Server: "a", Start: 18 * sec, End: 25 * sec}},
		Crowds:     []Crowd{{Server: "a", Start: 3 * sec, End: 4 * sec}, {Server: "a", Start: 18 * sec, End: 25 * sec}},
		Counted:    []Counted{{Server: "a", Incarnation: 1, At: 7 * sec}, {Server: "a", Incarnation: 2, At: 18 * sec}, {Server: "b", Incarnation: 1, At: 18 * sec}, {Server: "a", Incarnation: 2, At: 20 * sec}},
		Objects: []Object{
			{Key: "x", Revision: 1, At: 1 * sec}, {Key: "gone", Revision: 2, At: 1 * sec}, {Key: "gone", Revision: 3, At: 2 * sec, Gone: true}, {Key: "x", Revision: 4, At: 3 * sec, UID: "new"},
			{Key: "x", Revision: 5, At: 13 * sec, Gone: true}, {Key: "y", Revision: 6, At: 30 * sec},
		},
		Deliveries: []Delivery{{Informer: "old", At: 13 * sec, Kind: DeliveryAdded}, {Informer: "new", At: 13 * sec, Kind: DeliveryStarted}, {Informer: "new", At: 14 * sec, Kind: DeliveryListed}},
	}
}

func TestSlice(t *testing.T) {
	got, err := Slice(session(), Part{From: 12 * sec, To: 20 * sec})
	if err != nil {
		t.Fatal(err)
	}
	life := func(server string, n int, version string, state State, at Time) Lifecycle {
		return Lifecycle{Server: server, Incarnation: n, Version: version, State: state, At: at}
	}
	want := &History{
		Run: Run{Servers: []Server{{Name: "a", Version: "v2"}, {Name: "b", Version: "v1", Args: []string{"--x"}}, {Name: "c", Version: "v1"}}, StartedAt: time.Unix(112, 0)},
		Lifecycle: []Lifecycle{
			life("a", 1, "v2", StateStarting, 0), life("a", 1, "v2", StateReady, 0), life("b", 1, "v1", StateStarting, 0), life("b", 1, "v1", StateReady, 0),
			life("b", 1, "v1", StateStopping, 2*sec), life("b", 1, "v1", StateStopped, 3*sec), life("b", 2, "v1", StateStarting, 4*sec), life("c", 1, "v1", StateStarting, 4*sec),
		},
		Served: []Served{
			{Server: "a", Incarnation: 1, Document: "two"}, {Server: "b", Incarnation: 1, Document: "one"},
			{Server: "b", Incarnation: 1, At: 1 * sec, Confirmed: 1, Document: "three"}, {Server: "b", Incarnation: 1, At: 2 * sec, Confirmed: 1500 * time.Millisecond, Document: "two"},
		},
		Documents:      map[string]Document{"one": {Hash: "one"}, "two": {Hash: "two"}, "three": {Hash: "three"}, "asked": {Hash: "asked"}},
		Configurations: []Configuration{{Server: "a", Incarnation: 1, PeerCA: "x"}, {Server: "b", Incarnation: 2, At: 4 * sec}},
		Leases:         []Lease{{Server: "a", Incarnation: 1, First: 0, Last: 8 * sec}},
		Effects:        []Effect{{Server: "b", Incarnation: 1, At: 2 * sec}},
		Operations:     []Operation{{ID: "in", Start: 0, End: 1 * sec, Sent: &Sent{Server: "a"}, Received: &Received{Document: "asked"}}},
		Hops:           []Hop{{Operation: "in", Start: 0, End: 13 * sec, Entry: &Entry{Server: "a"}}},
		Written:        []Written{{ID: "r"}},
		Requests:       []Request{{ID: "r", Server: "a", Start: 1 * sec, End: 8 * sec}},
		Steps:          []Step{{Index: 0, Start: 1 * sec, End: 8 * sec}},
		Faults:         []Fault{{ID: 1, Start: -1 * sec, End: 1 * sec}, {ID: 2, Start: 1 * sec, End: Forever}},
		SlowProbes:     []SlowProbe{{Server: "a", Start: 6 * sec, End: 8 * sec}},
		Crowds:         []Crowd{{Server: "a", Start: 6 * sec, End: 8 * sec}},
		Counted:        []Counted{{Server: "a", Incarnation: 1, At: 6 * sec}},
		Objects:        []Object{{Key: "x", Revision: 4, UID: "new"}, {Key: "x", Revision: 5, At: 1 * sec, Gone: true}},
		Deliveries:     []Delivery{{Informer: "new", At: 1 * sec, Kind: DeliveryStarted}, {Informer: "new", At: 2 * sec, Kind: DeliveryListed}},
		End:            End{At: 8 * sec, Complete: true},
	}
	same(t, want, got)
}

// same compares histories record by record, so that a difference is short.
func same(t *testing.T, want, got *History) {
	t.Helper()
	w, g := reflect.ValueOf(*want), reflect.ValueOf(*got)
	for i := range w.NumField() {
		if !reflect.DeepEqual(w.Field(i).Interface(), g.Field(i).Interface()) {
			t.Errorf("%s:\nwant %+v\ngot  %+v", w.Type().Field(i).Name, w.Field(i), g.Field(i))
		}
	}
}

func TestSliceKeepsTheStateOfAProcess(t *testing.T) {
	for state, want := range map[State][]State{
		StateStarting: {StateStarting}, StateReady: {StateStarting, StateReady}, StatePaused: {StateStarting, StateReady, StatePaused},
		StateResumed: {StateStarting, StateReady}, StateStopping: {StateStarting, StateReady, StateStopping}, StateStopped: nil, StateKilled: nil, StateCrashed: nil,
	} {
		h := &History{Run: Run{Servers: []Server{{Name: "a"}}}, Lifecycle: []Lifecycle{{Server: "a", Incarnation: 7, State: state, At: 1}}}
		got, err := Slice(h, Part{From: 2, To: 3})
		if err != nil {
			t.Fatal(err)
		}
		var states []State
		for _, l := range got.Lifecycle {
			states = append(states, l.State)
			if l.At != 0 || l.Incarnation != 1 {
				t.Errorf("%s: %+v is not of the first incarnation at time 0", state, l)
			}
		}
		if !reflect.DeepEqual(states, want) {
			t.Errorf("%s: the slice begins with %v, want %v", state, states, want)
		}
	}
}

func TestSliceSaysWhatBeganReadyAndWasNot(t *testing.T) {
	got, err := Slice(session(), Part{From: 12 * sec, To: 20 * sec, Error: "step 3: no"})
	if err != nil || got.End.Error != "step 3: no" || !got.End.Complete {
		t.Errorf("the end is %+v, %v", got.End, err)
	}
	if _, err := Slice(session(), Part{From: 12 * sec, To: 11 * sec}); err == nil {
		t.Error("a part that ends before it begins was cut out")
	}
}

// A collector that is sliced repeatedly, and forgets in between, must give the same parts as one
// slice of everything.
func TestACollectorForgetsOnlyWhatNoLaterPartNeeds(t *testing.T) {
	h := session()
	c := NewCollector(h.Run, func() Time { return 0 })
	for _, d := range h.Documents {
		c.Document(d)
	}
	each(h.Lifecycle, c.Lifecycle)
	each(h.Served, func(s Served) { c.write(record{Served: &s}) })
	each(h.Effects, c.Effect)
	each(h.Configurations, c.Configuration)
	each(h.Leases, c.Lease)
	each(h.SlowProbes, c.SlowProbe)
	each(h.Crowds, c.Crowd)
	each(h.Counted, c.Counted)
	each(h.Steps, c.Step)
	each(h.Operations, c.Operation)
	each(h.Hops, c.Hop)
	each(h.Faults, c.Fault)
	each(h.Objects, c.Object)
	each(h.Requests, c.Request)
	each(h.Written, c.Written)
	each(h.Deliveries, c.Delivery)
	first, err := c.Part(Part{From: 2 * sec, To: 11 * sec})
	if err != nil {
		t.Fatal(err)
	}
	before := len(first.Faults)
	whole, err := c.Part(Part{From: 12 * sec, To: 20 * sec})
	if err != nil {
		t.Fatal(err)
	}
	c.Forget(12 * sec)
	again, err := c.Part(Part{From: 12 * sec, To: 20 * sec})
	if err != nil {
		t.Fatal(err)
	}
	same(t, whole, again)
	c.ForgetObjects()
	later, err := c.Part(Part{From: 12 * sec, To: 20 * sec})
	if err != nil || len(later.Objects) != 0 || len(later.Operations) != len(again.Operations) {
		t.Errorf("after forgetting objects: %d objects, %d operations; error %v", len(later.Objects), len(later.Operations), err)
	}
	if len(again.Objects) == 0 {
		t.Error("the part has no objects, so forgetting them proves nothing")
	}
	if len(first.Faults) != before || c.Asked("a") != 0 || c.Sent("in") {
		t.Errorf("after forgetting: %d faults in the part before, %d asked, sent %v", len(first.Faults), c.Asked("a"), c.Sent("in"))
	}
}

// A slice of a slice must be the slice.
func TestSlicesOfSlices(t *testing.T) {
	for from := range 20 * Time(1) {
		for to := from; to <= 20; to++ {
			outer, err := Slice(session(), Part{From: from * sec / 2, To: 20 * sec})
			if err != nil {
				t.Fatal(err)
			}
			inner, err := Slice(outer, Part{From: (to - from) * sec / 2, To: 20*sec - from*sec/2})
			if err != nil {
				t.Fatal(err)
			}
			once, err := Slice(session(), Part{From: to * sec / 2, To: 20 * sec})
			if err != nil {
				t.Fatal(err)
			}
			// An informer counts only in a part in which it was started.
			same(t, once, inner)
			if t.Failed() {
				t.Fatalf("from %d and then %d half seconds", from, to)
			}
		}
	}
}
