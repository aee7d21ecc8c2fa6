package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// one is a cluster of one server, which is ready.
type one struct {
	cluster.Reachable
	at *httptest.Server
}

func (o *one) Serving(string) int                  { return 1 }
func (o *one) Direct(string) (*rest.Config, error) { return &rest.Config{Host: o.at.URL}, nil }

// listing serves discovery: of one resource that the server serves itself, and of another one in
// its merged lists.
func listing(t *testing.T, served string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items, resource := "", "listed"
		if r.Header.Get("Accept") == workload.AcceptNoPeer {
			resource = served
		}
		if r.URL.Path == "/apis" {
			items = `{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"` + resource + `","scope":"Namespaced","verbs":["list"]}]}]}`
		}
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, items)
	}))
	t.Cleanup(s.Close)
	return s
}

// What a server serves is what it serves itself. What is swept is also what its merged lists have.
func TestTruthIsWhatAServerServesItself(t *testing.T) {
	cluster := &one{at: listing(t, "served")}
	truth, read := newTruthOf(t, cluster, nil, "a")
	truth.observe(t.Context(), "a")
	names := func(d history.Document) (all []string) {
		for _, r := range d.Resources {
			all = append(all, r.Resource)
		}
		slices.Sort(all)
		return all
	}
	if got := names(truth.listed(t.Context())); !slices.Equal(got, []string{"listed", "served"}) {
		t.Errorf("to sweep: %q, want what is served and what is listed", got)
	}
	h := read()
	if len(h.Served) != 1 || !slices.Equal(names(h.Documents[h.Served[0].Document]), []string{"served"}) {
		t.Errorf("it is recorded that it serves %+v, %+v", h.Served, h.Documents)
	}
}

// newTruthOf makes a truth of some servers without a listener, and a function that ends its history
// and reads it.
func newTruthOf(t *testing.T, cluster cluster.Reachable, now func() history.Time, servers ...string) (*truth, func() *history.History) {
	t.Helper()
	var file bytes.Buffer
	var run history.Run
	for _, name := range servers {
		run.Servers = append(run.Servers, history.Server{Name: name})
	}
	recorder := history.NewRecorder(&file, run, now)
	truth, err := newTruth(cluster, servers, recorder, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	truth.changed = func(map[string]history.Document) {}
	return truth, func() *history.History {
		t.Helper()
		if err := recorder.Close(nil); err != nil {
			t.Fatal(err)
		}
		h, err := history.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
}

// Requests to one server can overlap. The answer to the later request counts, whichever arrives
// last. The answer of a process that no longer serves does not count.
func TestTruthDoesNotGoBack(t *testing.T) {
	document := func(hash string) history.Document { return history.Document{Hash: hash} }
	first := func(hash string, incarnation int) history.Served {
		return history.Served{Server: "a", Document: hash, Incarnation: incarnation, At: 9}
	}
	then := func(hash string, confirmed history.Time) history.Served {
		return history.Served{Server: "a", Document: hash, Incarnation: 1, At: 9, Confirmed: confirmed}
	}
	for _, tc := range []struct {
		name    string
		serving int // the incarnation that serves when the answers arrive
		answers []known
		want    []history.Served
	}{
		{"in order", 1, []known{{1, document("old"), 1}, {1, document("new"), 2}}, []history.Served{first("old", 1), then("new", 1)}},
		{"in reverse order", 1, []known{{1, document("new"), 2}, {1, document("old"), 1}}, []history.Served{first("new", 1)}},
		{"of the same moment", 1, []known{{1, document("one"), 1}, {1, document("other"), 1}}, []history.Served{first("one", 1), then("other", 1)}},
		{"the same in reverse order", 1, []known{{1, document("old"), 2}, {1, document("old"), 1}, {1, document("new"), 3}}, []history.Served{first("old", 1), then("new", 2)}},
		{"of the process before", 2, []known{{2, document("new"), 1}, {1, document("old"), 2}}, []history.Served{first("new", 2)}},
		{"of a process that has ended", 0, []known{{1, document("old"), 1}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := &leaving{one: one{at: listing(t, "served")}, incarnation: tc.serving}
			truth, read := newTruthOf(t, cluster, func() history.Time { return 9 }, "a")
			told := ""
			truth.changed = func(all map[string]history.Document) { told = all["a"].Hash }
			for _, answer := range tc.answers {
				truth.learn("a", answer)
			}
			h := read()
			if !slices.Equal(h.Served, tc.want) {
				t.Errorf("it is recorded that it serves %+v, want %+v", h.Served, tc.want)
			}
			if n := len(tc.want); n > 0 && told != tc.want[n-1].Document {
				t.Errorf("the load got %q last", told)
			}
		})
	}
}

// Slow answers to probes, which avoid all faults, show an overloaded machine. A quick answer, and
// one of a server that was stopped meanwhile, show nothing.
func TestTruthNotesWhatIsLate(t *testing.T) {
	for _, tc := range []struct {
		name    string
		took    history.Time
		stopped bool
		want    []history.SlowProbe
	}{
		{"at once", late - 1, false, nil},
		{"late", late, false, []history.SlowProbe{{Server: "a", Start: 7, End: 7 + late, Queued: late / 2}}},
		{"late, of a server that is going", late, true, nil},
	} {
		const asked, waited = 7, time.Hour // neither clock starts at zero with this request
		now := history.Time(asked)
		cluster := &leaving{one: one{at: listing(t, "served")}, incarnation: 1, waited: waited}
		cluster.at.Config.Handler = after(cluster.at.Config.Handler, func() {
			now = asked + tc.took
			cluster.waited = waited + tc.took/2
			if tc.stopped {
				cluster.incarnation = 0
			}
		})
		truth, read := newTruthOf(t, cluster, func() history.Time { return now }, "a")
		truth.observe(t.Context(), "a")
		h := read()
		if !slices.Equal(h.SlowProbes, tc.want) {
			t.Errorf("%s: noted %v, want %v", tc.name, h.SlowProbes, tc.want)
		}
	}
}

// A machine that stands still sends no requests, so no answer is late.
func TestTruthNotesThatTheHarnessStoodStill(t *testing.T) {
	var now history.Time
	cluster := &leaving{one: one{at: listing(t, "served")}, incarnation: 1}
	truth, read := newTruthOf(t, cluster, func() history.Time { return now }, "a", "b")
	now = late - 1
	wall := time.Now().Round(0)
	last := truth.pulse(beat{0, wall}, wall.Add(now))
	now += late
	last = truth.pulse(last, wall.Add(now))
	now += pulseInterval
	last = truth.pulse(last, wall.Add(now+time.Hour)) // the machine has slept
	now += pulseInterval
	last = truth.pulse(last, wall.Add(now+time.Hour))
	cluster.incarnation, now = 0, now+time.Minute // no server serves
	truth.pulse(last, wall.Add(now))
	h := read()
	const woken = 2*late - 1 + pulseInterval
	want := []history.SlowProbe{
		{Server: "a", Start: late - 1, End: 2*late - 1, Queued: late}, {Server: "b", Start: late - 1, End: 2*late - 1, Queued: late},
		{Server: "a", Start: 2*late - 1, End: woken, Queued: pulseInterval}, {Server: "b", Start: 2*late - 1, End: woken, Queued: pulseInterval},
	}
	if !slices.Equal(h.SlowProbes, want) {
		t.Errorf("noted %v, want %v", h.SlowProbes, want)
	}
}

// Between the last answer with one document and the first with another, it is unknown which
// document was served. The document of one process says nothing about the next process. Without
// these two rules, a right 404 of a server would count as wrong.
func TestTruthTellsFromWhenToWhenADocumentWasSeen(t *testing.T) {
	older, newer := listing(t, "older").Config.Handler, listing(t, "newer").Config.Handler
	var now history.Time
	var serves http.Handler
	var meanwhile func()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now += time.Second
		meanwhile()
		serves.ServeHTTP(w, r)
	}))
	t.Cleanup(own.Close)
	cluster := &leaving{one: one{at: own}}
	truth, read := newTruthOf(t, cluster, func() history.Time { return now }, "a")
	look := func(at history.Time, incarnation int, handler http.Handler, do func()) {
		now, cluster.incarnation, serves, meanwhile = at*time.Second, incarnation, handler, do
		truth.observe(t.Context(), "a")
	}
	nothing := func() {}
	look(10, 1, older, nothing) // each look takes two seconds, for /api and /apis
	look(20, 1, older, nothing)
	look(30, 1, newer, nothing)
	look(40, 2, newer, nothing)
	look(50, 2, older, func() { cluster.incarnation = 3 })
	look(60, 2, older, func() { cluster.incarnation = 0 })
	h := read()
	var got []string
	for _, s := range h.Served {
		got = append(got, fmt.Sprintf("%d at %s: %s, confirmed %s", s.Incarnation, s.At, h.Documents[s.Document].Resources[0].Resource, s.Confirmed))
	}
	want := []string{"1 at 12s: older, confirmed 0s", "1 at 32s: newer, confirmed 20s", "2 at 42s: newer, confirmed 0s"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// stopping is a cluster of one server, which may have been told to stop.
type stopping struct {
	leaving
	told *history.Lifecycle
}

func (s *stopping) Draining(string) *history.Lifecycle { return s.told }

// A server that was told to stop serves until the last request that it answered as before. The load
// must go on to ask for what it serves.
func TestTruthFollowsAServerThatDrains(t *testing.T) {
	var now history.Time
	server, other := listing(t, "served"), listing(t, "other").Config.Handler
	cluster := &stopping{leaving: leaving{one: one{at: server}, incarnation: 1}}
	truth, read := newTruthOf(t, cluster, func() history.Time { return now }, "a")
	look := func(at history.Time) (known bool) {
		now = at * time.Second
		truth.observe(t.Context(), "a")
		return len(truth.served()) > 0
	}
	look(1)
	cluster.incarnation, cluster.told = 0, &history.Lifecycle{Server: "a", Incarnation: 1, Version: "v1", State: history.StateStopping}
	if !look(2) || !look(3) {
		t.Error("the load no longer knows what a serves while a drains")
	}
	serves := server.Config.Handler
	server.Config.Handler = other
	if look(4) {
		t.Error("a server that serves something else counts as serving")
	}
	server.Config.Handler = serves
	if look(5) {
		t.Error("a server that was gone is back without a start")
	}
	cluster.told = nil
	cluster.incarnation = 2
	look(6)
	cluster.incarnation, cluster.told = 0, &history.Lifecycle{Server: "a", Incarnation: 2, State: history.StateStopping}
	look(7)
	cluster.incarnation, cluster.told = 3, nil
	look(8) // the next process is ready before the end of the one before was noticed
	cluster.incarnation, cluster.told = 0, &history.Lifecycle{Server: "a", Incarnation: 4, State: history.StateStopping}
	if look(9) { // the process before never answered after it was told to stop
		t.Error("a process serves what the one before it served")
	}
	want := []history.Lifecycle{
		{Server: "a", Incarnation: 1, Version: "v1", State: history.StateDrained, At: 3 * time.Second},
		{Server: "a", Incarnation: 2, State: history.StateDrained, At: 7 * time.Second},
	}
	if got := read().Lifecycle; !slices.Equal(got, want) {
		t.Errorf("recorded %+v, want %+v", got, want)
	}
}

// A request that fails during the run is reported to people. A request that fails because the run
// ends is not.
func TestTroubleIsToldWhileTheRunGoesOn(t *testing.T) {
	server := listing(t, "served")
	server.Close()
	for _, ended := range []bool{false, true} {
		c := &advertising{leaving: leaving{one: one{at: server}, incarnation: 1}, fails: errors.New("etcd is gone")}
		truth, _ := newTruthOf(t, c, nil, "a")
		var said []string
		status := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
		truth.status = status
		ctx, cancel := context.WithCancel(t.Context())
		if ended {
			cancel()
		}
		truth.observe(ctx, "a")
		newLeases(c, truth.recorder, status).look(ctx, "a")
		cancel()
		if got := len(said); got != map[bool]int{false: 2}[ended] {
			t.Errorf("the run has ended %t: the report to people is %q", ended, said)
		}
	}
}

// When a server ends, the load gets the remaining documents. If none remain, the load is not told,
// because it would have no server to ask.
func TestTheLoadFollowsServersThatGo(t *testing.T) {
	cluster := &leaving{one: one{at: listing(t, "served")}, incarnation: 1}
	truth, _ := newTruthOf(t, cluster, nil, "a", "b")
	var told []string
	truth.changed = func(all map[string]history.Document) {
		told = append(told, strings.Join(slices.Sorted(maps.Keys(all)), "+"))
	}
	truth.observe(t.Context(), "a")
	truth.observe(t.Context(), "b")
	truth.forget("a")
	if want := []string{"a", "a+b"}; !slices.Equal(told, want) {
		t.Errorf("the load got %q while all serve as before, want %q", told, want)
	}
	truth.forget("nobody")
	cluster.incarnation = 0
	truth.observe(t.Context(), "a")
	truth.observe(t.Context(), "a")
	truth.observe(t.Context(), "b")
	if want := []string{"a", "a+b", "b"}; !slices.Equal(told, want) {
		t.Errorf("the load got %q, want %q", told, want)
	}
}

// The clock of the machine jumped if it moved forward or back, relative to the clock of the run, by
// at least the duration of a slow probe.
func TestLeapsOfTheMachinesClock(t *testing.T) {
	for _, c := range []struct {
		run, wall time.Duration
		slow      bool
	}{
		{pulseInterval, pulseInterval, false},
		{pulseInterval, pulseInterval + late - 1, false},
		{pulseInterval, pulseInterval + late, true},
		{pulseInterval, pulseInterval - late + 1, false},
		{pulseInterval, pulseInterval - late, true},
		{late - 1, late - 1, false},
		{late, late, true},
	} {
		const began = 3 * time.Second
		now := began
		cluster := &leaving{one: one{at: listing(t, "served")}, incarnation: 1}
		truth, read := newTruthOf(t, cluster, func() history.Time { return now }, "a")
		wall := time.Now().Round(0)
		last := beat{now, wall}
		now += c.run
		if next := truth.pulse(last, wall.Add(c.wall)); next.run != now || !next.wall.Equal(wall.Add(c.wall)) {
			t.Errorf("%s by the run, %s by the machine: the next beat is %+v", c.run, c.wall, next)
		}
		var want []history.SlowProbe
		if c.slow {
			want = []history.SlowProbe{{Server: "a", Start: began, End: now, Queued: c.run}}
		}
		if got := read().SlowProbes; !slices.Equal(got, want) {
			t.Errorf("%s by the run, %s by the machine: noted %v, want %v", c.run, c.wall, got, want)
		}
	}
}

// A cluster that does not know how long threads waited for a CPU reports no waiting time.
func TestQueuedIsAskedOfClustersThatKnow(t *testing.T) {
	c := &one{}
	if got := queued(c)("a"); got != 0 {
		t.Errorf("%s of a cluster that does not know", got)
	}
	if got := queued(&leaving{waited: time.Second})("a"); got != time.Second {
		t.Errorf("%s of a cluster that knows it to be a second", got)
	}
}

// leaving is a cluster whose server may end.
type leaving struct {
	one
	incarnation int
	waited      time.Duration
}

func (l *leaving) Queued(string) time.Duration { return l.waited }

func (l *leaving) Serving(string) int { return l.incarnation }

func after(h http.Handler, do func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		do()
		h.ServeHTTP(w, r)
	})
}
