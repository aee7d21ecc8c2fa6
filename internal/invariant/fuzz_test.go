package invariant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// save writes a history in the same way as a run.
func save(t testing.TB, h *history.History) []byte {
	t.Helper()
	var b bytes.Buffer
	r := history.NewRecorder(&b, h.Run, func() history.Time { return h.End.At })
	for _, d := range h.Documents {
		r.Document(d)
	}
	for _, s := range h.Served {
		r.Served(s, h.Documents[s.Document])
	}
	for _, l := range h.Lifecycle {
		r.Lifecycle(l)
	}
	for _, c := range h.Configurations {
		r.Configuration(c)
	}
	for _, l := range h.Leases {
		r.Lease(l)
	}
	for _, o := range h.Operations {
		r.Operation(o)
	}
	for _, hop := range h.Hops {
		r.Hop(hop)
	}
	for _, s := range h.Steps {
		r.Step(s)
	}
	for _, f := range h.Faults {
		r.Fault(f)
	}
	for _, c := range h.Crowds {
		r.Crowd(c)
	}
	for _, c := range h.Counted {
		r.Counted(c)
	}
	for _, o := range h.Objects {
		r.Object(o)
	}
	for _, q := range h.Requests {
		r.Request(q)
	}
	for _, d := range h.Deliveries {
		r.Delivery(d)
	}
	if err := r.Close(nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSavedHistoryIsJudgedTheSame(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		s := rich(wrong, names()...)
		read, err := history.Read(bytes.NewReader(save(t, s.h)))
		if err != nil {
			t.Fatal(err)
		}
		want, got := fmt.Sprintf("%+v", asJSON(t, Judge(s.h))), fmt.Sprintf("%+v", asJSON(t, Judge(read)))
		if got != want {
			t.Errorf("a saved history is judged differently:\n%s\n%s", got, want)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzJudge(f *testing.F) {
	// The seeds are small, because the fuzzer changes single bytes.
	f.Add(save(f, blank("NoFalseNotFound").h))
	f.Add(save(f, tell(names()...).cut("b", "a", 15, 40).ask(20, "b", gadgets, 404).hop("b", 0, 9, false).hop("a", 1, 8, true).
		discover(60, "b", "/apis", mergedDoc).discover(60, "a", "/apis", reorderedDoc).ask(70, "b", gadgets, 200, sweep).ask(71, "b", ghosts, 503).
		ask(80, "b", gadgets, 201, verb("create"), by("admin")).hop("b", 0, 9, false, as("admin"), answering(201)).
		hop("a", 1, 3, true, as("admin"), answering(201)).
		hop("a", 5, 8, true, as("reader"), answering(201), passedBy("b"), asking("query: without limit=5")).h))
	f.Add(save(f, tell().step("pause a", 20, 50).pause("a", 20, 50).kill("c", 60).ask(30, "b", gadgets, 503, took(25)).ask(150, "b", widgets, 500).h))
	f.Add(save(f, tell(names()...).put(10, gadget("kept"), namespace("n")).put(11, configMap("one", gadget("kept"))).
		request(20, "b", collector, "get", gadgets, "", "kept", 404).request(21, "b", collector, "delete", configMaps, "n", "one", 200).
		mark(21, "one", "foregroundDeletion").mark(22, "n").remove(23, "n").h))
	f.Add([]byte(`{"run":{"schema":"skewproof/history/v1alpha1","servers":[{"name":"a"}]}}
{"lifecycle":{"server":"a","incarnation":1,"state":"ready","at":-9223372036854775808}}
{"operation":{"server":"a","verb":"list","gvr":{"resource":"x"},"start":-9223372036854775808,"end":9223372036854775807,"status":404,"missing":"resource"}}
{"fault":{"kind":"cut","from":"a","to":"a","blocks":true,"start":-9223372036854775808,"end":9223372036854775807}}
{"end":{"at":9223372036854775807,"complete":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := history.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		checkVerdicts(t, h)
	})
}

// checkVerdicts checks the properties that every verdict must have, whatever the history is.
func checkVerdicts(t *testing.T, h *history.History) {
	t.Helper()
	vs := Judge(h)
	for _, v := range vs {
		if v.Outcome == OutcomePass && (v.Checked == 0 || v.Violations > 0 || !h.End.Complete || h.End.Error != "") {
			t.Errorf("%s may not pass: %+v", v.Name, v)
		}
		if (v.Outcome == OutcomeFail) != (v.Violations > 0) || (v.Violations > 0) != (len(v.Evidence) > 0) {
			t.Errorf("%s: %s with %d violations and %d pieces of evidence", v.Name, v.Outcome, v.Violations, len(v.Evidence))
		}
		if (v.Outcome == OutcomeInconclusive) != (v.Reason != "") {
			t.Errorf("%s: %s, reason %q", v.Name, v.Outcome, v.Reason)
		}
		shown := 0
		for _, e := range v.Evidence {
			shown += e.Count
			if e.Sentence == "" || e.Cause == "" || e.First > e.Last {
				t.Errorf("%s: evidence %+v", v.Name, e)
			}
		}
		if len(v.Evidence) == v.Kinds && shown != v.Violations {
			t.Errorf("%s: %d violations, of which the evidence counts %d", v.Name, v.Violations, shown)
		}
	}
	if Overall(vs, false, nil).Outcome() == OutcomePass && Overall(vs, true, nil).Outcome() == OutcomeInconclusive && !slices.ContainsFunc(vs, func(v Verdict) bool {
		return v.Grade == GradeExtended && v.About && v.Outcome == OutcomeInconclusive
	}) {
		t.Error("strict is inconclusive for no reason")
	}
}

// chaos is a random history. Each record in it is possible, but the records need not fit together.
func chaos(rng *rand.Rand) *history.History {
	pick := func(names ...string) string { return names[rng.IntN(len(names))] }
	s := blank(names()[:rng.IntN(len(names())+1)]...)
	servers := []string{"a", "b", "c"}
	documents := []history.Document{oldDoc, newDoc, mergedDoc, coreDoc, reorderedDoc, {Hash: "empty"}}
	document := func() history.Document { return documents[rng.IntN(len(documents))] }
	at := func() float64 { return rng.Float64() * 200 }
	for _, server := range servers {
		if rng.IntN(5) > 0 {
			s.start(server, rng.Float64()*10, document())
		}
	}
	for range rng.IntN(8) {
		states := []history.State{
			history.StateStarting, history.StateReady, history.StateStopping, history.StateStopped, history.StateKilled,
			history.StatePaused, history.StateResumed, history.StateCrashed, "dancing",
		}
		s.state(pick(servers...), at(), states[rng.IntN(len(states))])
		before, seen := at(), at()
		s.changed(pick(servers...), min(before, seen), seen, document())
		s.served(pick(servers...), at(), document())
	}
	for _, server := range servers[:rng.IntN(4)] {
		s.told(server, []func(*history.Configuration){off, func(c *history.Configuration) { c.PeerIP = "" }, func(c *history.Configuration) { c.SharesHost = "a" }}[rng.IntN(3)])
		for range rng.IntN(4) {
			from := at()
			s.lease(server, from, from+at()/2, pick("", "10.0.0.a:6443", "10.0.0.b:6443", "10.0.0.c:6443", "nonsense"))
		}
	}
	for range rng.IntN(4) {
		from := at()
		s.fault(pick("cut", "latency", "reset"), pick("a", "b", "c", "client", ""), pick("a", "b", "c", "etcd", ""), from, from+at()/4, rng.IntN(2) == 0)
		s.step("step", from, from+1)
	}
	for range rng.IntN(2) {
		s.crowd(at()/10, 190, 4, rng.IntN(5))
	}
	for _, server := range servers[:rng.IntN(4)] {
		s.metrics(100+at()/2, server, asSample(gadgets, 200, rng.IntN(9)), asSample(pods, rng.IntN(500), rng.IntN(9)))
	}
	resources := []history.GVR{pods, widgets, gadgets, ghosts, {}, {Group: "apps"}}
	statuses := []int{0, 200, 200, 200, 304, 403, 404, 404, 409, 429, 500, 502, 503, 504}
	failures := []history.Failure{"", "", "", history.FailureReset, history.FailureTimeout, history.FailureCanceled, history.FailureOther}
	hops := rng.IntN(4)
	for range 200 {
		server := pick(servers...)
		if rng.IntN(4) == 0 {
			s.discover(at(), server, pick("/apis", "/api", "/version"), document())
		} else {
			s.ask(at(), server, resources[rng.IntN(len(resources))], statuses[rng.IntN(len(statuses))], took(rng.ExpFloat64()),
				failed(failures[rng.IntN(len(failures))]), sub(pick("", "", "status", "resize", "log")), verb(pick("list", "get", "watch", "create")),
				by(pick("", "admin", "admin", "reader")), perhaps(rng.IntN(3) > 0, forbidden))
		}
		switch rng.IntN(8) {
		case 0:
			s.nopeer(at(), server, pick("/apis", "/api"), document())
		case 1:
			s.openapi(at(), server, document(), status(statuses[rng.IntN(len(statuses))]))
		case 2:
			s.lists(at(), server, rng.IntN(3), rng.IntN(2)*100)
		case 3:
			if hops == 0 { // in some histories only
				break
			}
			s.ask(at(), server, gadgets, 200, media(pick("application/yaml", "*/*", "application/json;as=Table"), pick("", "application/yaml")))
		}
		for range hops * rng.IntN(2) {
			from := rng.IntN(10)
			s.hop(pick(servers...), from, from+rng.IntN(10), rng.IntN(2) == 0, as(pick("", "admin", "admin", "reader")),
				answering(statuses[rng.IntN(len(statuses))]), passedBy(pick("", "", "a", "b", "c")), asking(pick("", "", "", "body", "path: /x rather than /y")))
		}
	}
	contents := []history.Content{"", "whole", "broken"}[:1+rng.IntN(3)]
	for range 30 {
		s.ask(at(), pick(servers...), gadgets, 200, watching(rng.IntN(3)), took(rng.ExpFloat64()), failed(failures[rng.IntN(len(failures))]), events(rng.IntN(2)))
		s.ask(at(), pick(servers...), gadgets, 200, withContent(contents[rng.IntN(len(contents))]))
		s.legacy(at(), pick(servers...), pick("/apis", "/api"), document())
	}
	for i := range rng.IntN(3) * 5 {
		s.controlled(i, at, pick)
	}
	if rng.IntN(4) == 0 { // nothing happens to the servers, and the load sends many requests
		undisturbed := tell().h
		s.h.Lifecycle, s.h.Served, s.h.Faults, s.h.Steps = undisturbed.Lifecycle, undisturbed.Served, nil, nil
		for range 300 {
			s.ask(at(), "b", gadgets, statuses[rng.IntN(len(statuses))], func(o *history.Operation) { o.Rerouted = rng.IntN(9) == 0 })
		}
	}
	if rng.IntN(5) == 0 {
		s.h.End = history.End{}
	}
	for i := range s.h.Faults {
		s.h.Faults[i].Distrust = []history.Distrust{"", history.DistrustServing, history.DistrustFrontProxy}[rng.IntN(3)]
	}
	for i := range s.h.Hops {
		s.h.Hops[i].Groups, s.h.Hops[i].UID, s.h.Hops[i].Extra = pick("", "g", "g", "h"), pick("", "", "u"), pick("", "x", "x")
		s.h.Hops[i].Client = pick("", "10.0.0.9", "10.0.0.9", "10.0.0.8")
		if s.h.Hops[i].Status == 0 {
			s.h.Hops[i].Status = []int{0, 200}[rng.IntN(2)]
		}
	}
	for i := range s.h.Operations {
		if o := &s.h.Operations[i]; o.Status == 200 && rng.IntN(4) > 0 {
			o.Object, o.Headers = pick(`"1" x`, `"1" x`, `"1" y`, `"2" z`), pick("", "", "A: b")
		}
	}
	if rng.IntN(3) == 0 {
		s.rewritten(rng.IntN(2) == 0).counted(rng.IntN(2) == 0).migrated(rng.IntN(2) == 0).grown(rng.IntN(2) == 0).led(rng.IntN(2) == 0)
	}
	for _, server := range []string{"b", ""}[:rng.IntN(3)] {
		s.chatter(rng, server)
	}
	return s.h
}

// chatter adds an informer that gets random deliveries.
func (s *story) chatter(rng *rand.Rand, server string) {
	i := s.informer(1, server)
	kinds := []history.DeliveryKind{
		history.DeliveryListed, history.DeliveryAdded, history.DeliveryModified, history.DeliveryDeleted, history.DeliveryBookmark, history.DeliveryFailed,
	}
	for now := 1 + 20*rng.ExpFloat64(); now < 190; now += 20 * rng.ExpFloat64() {
		revision := 100 + rng.Int64N(int64(len(s.h.Objects))+1)
		object := got(fmt.Sprint("o", rng.IntN(5)), revision)
		switch kind := kinds[rng.IntN(len(kinds))]; kind {
		case history.DeliveryBookmark:
			i.tell(now, kind, revision)
		case history.DeliveryFailed:
			i.refused(now, 503)
		default:
			i.tell(now, kind, revision, object)
		}
	}
	i.end()
}

// controlled adds an owner with a dependent in a namespace, and a random fate for them.
func (s *story) controlled(i int, at func() float64, pick func(...string) string) *story {
	own, dep, ns := fmt.Sprint("o", i), fmt.Sprint("d", i), fmt.Sprint("ns", i)
	dependent := within(ns, configMap(dep, gadget(own)))
	dependent.Owners[0].Blocks = pick("", "blocks") != ""
	now := at() / 2
	s.put(now, gadget(own), namespace(ns), dependent)
	for now < 195 && pick("go on", "go on", "go on", "end") == "go on" {
		now += at() / 8
		which := pick(own, dep, ns)
		if pick("denied", "") != "" {
			s.request(now-0.1, pick("a", "b"), pick(collector, cleaner), pick("get", "list"), gadgets, "", pick(own, ""), 404)
		}
		if pick("recorded", "") != "" {
			s.request(now-0.01, pick("a", "b"), pick(collector, cleaner, replicas), pick("delete", "deletecollection"), configMaps, ns, pick(dep, ""), 200)
		}
		switch pick("mark", "remove", "remove", "disown", "explain") {
		case "mark":
			s.mark(now, which, pick("foregroundDeletion", "some/finalizer"))
		case "remove":
			s.remove(now, which)
		case "disown":
			s.change(now, dep, func(o *history.Object) { o.Owners = nil })
		case "explain":
			s.change(now, ns, func(o *history.Object) { o.Conditions = []string{"NamespaceContentRemaining"} })
		}
	}
	return s
}

// perhaps returns the option, or an option without effect.
func perhaps(yes bool, option func(*history.Operation)) func(*history.Operation) {
	if yes {
		return option
	}
	return func(*history.Operation) {}
}

func TestChaosIsJudged(t *testing.T) {
	seen := map[string]map[Outcome]int{}
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		h := chaos(rng)
		checkVerdicts(t, h)
		want := ordered(Judge(h))
		shuffle(rng, h.Operations)
		shuffle(rng, h.Hops)
		shuffle(rng, h.Lifecycle)
		shuffle(rng, h.Served)
		shuffle(rng, h.Leases)
		shuffle(rng, h.Configurations)
		shuffle(rng, h.Faults)
		shuffle(rng, h.Steps)
		shuffle(rng, h.Objects)
		shuffle(rng, h.Requests)
		shuffle(rng, h.Deliveries)
		shuffle(rng, h.Counted)
		if got := ordered(Judge(h)); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: the order of the records changes the verdicts", seed)
		}
		for _, v := range want {
			if seen[v.Name] == nil {
				seen[v.Name] = map[Outcome]int{}
			}
			seen[v.Name][v.Outcome]++
		}
	}
	for name, outcomes := range seen {
		if outcomes[OutcomeFail] == 0 || outcomes[OutcomeInconclusive] == 0 {
			t.Errorf("chaos is too tame for %s: %v", name, outcomes)
		}
	}
}

// The benchmark judges fifty thousand operations, because a user waits for the report meanwhile.
func BenchmarkJudge(b *testing.B) {
	const operations = 50_000
	s := tell(names()...)
	for i := range 10 {
		at := 20 + 15*float64(i)
		s.step("cut", at, at+1).cut("b", "a", at, at+3).stop("c", at+4).start("c", at+6, oldDoc)
	}
	for i := range operations {
		at := 180 * float64(i) / operations
		server := []string{"a", "b", "c"}[i%3]
		switch i % 10 {
		case 0:
			s.discover(at, server, "/apis", mergedDoc)
		case 1:
			s.ask(at, server, ghosts, 404)
		case 2, 3, 4:
			s.ask(at, server, gadgets, 200).hop(server, 0, 9, false)
			if server != "a" {
				s.hop("a", 1, 8, true)
			}
		default:
			s.ask(at, server, history.GVR{Group: "apps", Version: "v1", Resource: fmt.Sprint("r", i%100)}, 404)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		Judge(s.h)
	}
	b.ReportMetric(float64(operations*b.N)/b.Elapsed().Seconds(), "operations/s")
}
