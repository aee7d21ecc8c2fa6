package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// A story is a history made by hand. Times are seconds. By default, three servers a, b and c run
// from second 0 (ready at 1) to the end at 200. Server a is new, and serves "gadgets" in addition
// to what all servers serve.
type story struct {
	h *history.History
}

var (
	pods    = history.GVR{Version: "v1", Resource: "pods"}
	widgets = history.GVR{Group: "apps", Version: "v1", Resource: "widgets"} // all servers serve them
	gadgets = history.GVR{Group: "apps", Version: "v2", Resource: "gadgets"} // only the new version serves them
	ghosts  = history.GVR{Group: "none", Version: "v1", Resource: "ghosts"}  // no server serves them
	readers = []string{"get", "list"}
)

// The stories have their own bounds, so that a change of the defaults does not change what a story
// shows.
var storyBounds = history.Bounds{Staleness: 10 * time.Second, Unavailable: 30 * time.Second, Convergence: 30 * time.Second}

func sec(s float64) history.Time { return history.Time(s * float64(time.Second)) }

func line(g history.GVR, subresources ...string) history.Resource {
	r := history.Resource{GVR: g, Kind: "K", Verbs: readers}
	for _, s := range subresources {
		r.Subresources = append(r.Subresources, history.Subresource{Name: s, Kind: "K", Verbs: readers})
	}
	return r
}

func doc(hash string, rs ...history.Resource) history.Document {
	return history.Document{Hash: hash, Bytes: 100, Resources: rs}
}

var (
	oldDoc = doc("old", line(pods, "status"), line(widgets))
	newDoc = doc("new", line(pods, "status", "resize"), line(widgets), line(gadgets))
	// mergedDoc is a right merge of both answers at /apis.
	mergedDoc = doc("merged", line(widgets), line(gadgets))
	coreDoc   = doc("core", line(pods, "status", "resize"))
)

func blank(about ...string) *story {
	s := &story{&history.History{
		Run: history.Run{
			Schema: history.SchemaVersion, Scenario: "story", About: about, Bounds: storyBounds,
			Servers: []history.Server{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		},
		Documents: map[string]history.Document{},
		End:       history.End{At: sec(200), Complete: true},
	}}
	for _, d := range []history.Document{oldDoc, newDoc, mergedDoc, coreDoc} {
		s.document(d)
	}
	return s
}

// tell begins a story in which a is new and b and c are old.
func tell(about ...string) *story {
	s := blank(about...).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, oldDoc)
	if slices.Contains(about, "OrphansCollected") || slices.Contains(about, "DeletionEnds") {
		s.collects(0, 200)
	}
	return s
}

func (s *story) document(d history.Document) *story {
	s.h.Documents[d.Hash] = d
	return s
}

func (s *story) incarnation(server string) int {
	n := 0
	for _, l := range s.h.Lifecycle {
		if l.Server == server {
			n = max(n, l.Incarnation)
		}
	}
	return n
}

func (s *story) state(server string, at float64, st history.State) *story {
	n := s.incarnation(server)
	if st == history.StateStarting {
		n++
	}
	s.h.Lifecycle = append(s.h.Lifecycle, history.Lifecycle{Server: server, Incarnation: n, Version: "v1", State: st, At: sec(at)})
	return s
}

// start makes the server ready, and its document known, one second later.
func (s *story) start(server string, at float64, d history.Document) *story {
	return s.startUnknown(server, at).served(server, at+1, d)
}

func (s *story) startUnknown(server string, at float64) *story {
	return s.state(server, at, history.StateStarting).state(server, at+1, history.StateReady)
}

func (s *story) served(server string, at float64, d history.Document) *story {
	s.document(d)
	s.h.Served = append(s.h.Served, history.Served{Server: server, Incarnation: s.incarnation(server), At: sec(at), Document: d.Hash})
	return s
}

// changed makes the server's document hold until before, and the next document from at on.
func (s *story) changed(server string, before, at float64, d history.Document) *story {
	s.served(server, at, d)
	s.h.Served[len(s.h.Served)-1].Confirmed = sec(before)
	return s
}

// runs sets the version of all incarnations of a server so far.
func (s *story) runs(server, version string) *story {
	for i := range s.h.Lifecycle {
		if l := &s.h.Lifecycle[i]; l.Server == server {
			l.Version = version
		}
	}
	return s
}

// emulating makes servers emulate a minor version from their start on.
func (s *story) emulating(minor string, servers ...string) *story {
	for i := range s.h.Lifecycle {
		if l := &s.h.Lifecycle[i]; slices.Contains(servers, l.Server) {
			l.Emulates = minor
		}
	}
	return s
}

func (s *story) stop(server string, at float64) *story {
	return s.state(server, at, history.StateStopping).state(server, at+1, history.StateStopped)
}

// drain stops a server that is seen to serve until a time, and ends later.
func (s *story) drain(server string, at, until, end float64) *story {
	return s.state(server, at, history.StateStopping).state(server, until, history.StateDrained).state(server, end, history.StateStopped)
}

// off makes the plan switch a server's proxy off. The server gets one request meanwhile.
func (s *story) off(server string, from, to float64) *story {
	s.h.Faults = append(s.h.Faults, history.Fault{
		ID: len(s.h.Faults) + 1, Kind: history.FaultProxyOff, Server: server, Start: sec(from), End: sec(to), Evidence: history.Evidence{Requests: 1},
	})
	return s
}

func (s *story) kill(server string, at float64) *story {
	return s.state(server, at, history.StateKilled)
}
func (s *story) pause(server string, from, to float64) *story {
	return s.state(server, from, history.StatePaused).state(server, to, history.StateResumed)
}

func (s *story) step(sentence string, from, to float64) *story {
	s.h.Steps = append(s.h.Steps, history.Step{Index: len(s.h.Steps), Sentence: sentence, Start: sec(from), End: sec(to), Disturbs: true})
	return s
}

func (s *story) fault(kind, from, to string, start, end float64, blocks bool) *story {
	s.h.Faults = append(s.h.Faults, history.Fault{
		ID: len(s.h.Faults) + 1, Kind: kind, From: from, To: to, Blocks: blocks, Start: sec(start), End: sec(end),
		Evidence: history.Evidence{Refused: 1},
	})
	return s
}

func (s *story) cut(from, to string, start, end float64) *story {
	return s.fault("cut", from, to, start, end, true)
}

// distrust makes one server not trust another's certificate, or makes the other server not believe
// it. The two servers alone have to act on that.
func (s *story) distrust(how history.Distrust, from, to string, start, end float64) *story {
	s.fault(history.FaultMisconfiguration, from, to, start, end, true)
	s.h.Faults[len(s.h.Faults)-1].Distrust = how
	return s
}

// ask adds an operation of 10 ms. A 404 is about the resource, unless an option changes that.
func (s *story) ask(at float64, server string, g history.GVR, status int, options ...func(*history.Operation)) *story {
	op := history.Operation{ID: fmt.Sprintf("op-%04d", len(s.h.Operations)), Start: sec(at), End: sec(at + 0.01),
		Sent:     &history.Sent{Purpose: history.PurposeLoad, Client: "dynamic", Server: server, Verb: "list", GVR: g, Path: "/" + g.String()},
		Received: &history.Received{Status: status}}
	if status == 404 {
		op.Missing = history.MissingResource
	}
	for _, o := range options {
		o(&op)
	}
	if op.Status == 0 && op.Failure == history.FailureNone {
		op.Failure = history.FailureOther
	}
	if kinds := askedFor(&op); len(kinds) > 0 && succeeded(op.Status) && op.Body == history.BodyNone && op.Status != 204 {
		op.Body, op.Content = kinds[0], cmp.Or(op.Content, history.ContentWhole)
	}
	s.h.Operations = append(s.h.Operations, op)
	s.h.End.At = max(s.h.End.At, op.End)
	return s
}

// askEvery asks once a second between from and to, both included.
func (s *story) askEvery(from, to float64, server string, g history.GVR, status int, options ...func(*history.Operation)) *story {
	for at := from; at <= to; at++ {
		s.ask(at, server, g, status, options...)
	}
	return s
}

func (s *story) discover(at float64, server, path string, d history.Document, options ...func(*history.Operation)) *story {
	s.document(d)
	return s.ask(at, server, history.GVR{}, 200, append([]func(*history.Operation){func(o *history.Operation) {
		o.Verb, o.Path, o.Document, o.ETag = history.VerbDiscovery, path, d.Hash, "etag-"+d.Hash
	}}, options...)...)
}

// hop adds the server's record of the latest operation, in milliseconds after its start.
func (s *story) hop(server string, from, to int, rerouted bool, options ...func(*history.Hop)) *story {
	op := s.h.Operations[len(s.h.Operations)-1]
	at := func(ms int) history.Time { return op.Start + history.Time(ms)*time.Millisecond }
	hop := history.Hop{Operation: op.ID, Start: at(from), End: at(to), Entry: &history.Entry{Server: server, Rerouted: rerouted}}
	for _, o := range options {
		o(&hop)
	}
	s.h.Hops = append(s.h.Hops, hop)
	return s
}

func (s *story) need(p history.Pressure) *story {
	s.h.Run.Pressure = p
	return s
}

func took(seconds float64) func(*history.Operation) {
	return func(o *history.Operation) { o.End = o.Start + sec(seconds) }
}

func failed(f history.Failure) func(*history.Operation) {
	return func(o *history.Operation) { o.Failure = f }
}

func verb(v string) func(*history.Operation) { return func(o *history.Operation) { o.Verb = v } }
func sub(name string) func(*history.Operation) {
	return func(o *history.Operation) { o.Subresource = name }
}
func by(user string) func(*history.Operation) {
	return func(o *history.Operation) { o.User = user }
}
func as(user string) func(*history.Hop)       { return func(h *history.Hop) { h.User = user } }
func answering(status int) func(*history.Hop) { return func(h *history.Hop) { h.Status = status } }
func passedBy(server string) func(*history.Hop) {
	return func(h *history.Hop) { h.From = server }
}
func asking(otherwise string) func(*history.Hop) {
	return func(h *history.Hop) { h.Altered = otherwise }
}
func sweep(o *history.Operation)         { o.Purpose = history.PurposeSweep }
func missingObject(o *history.Operation) { o.Missing = history.MissingObject }
func unsaid(o *history.Operation)        { o.Missing = history.MissingNothing }
func etag(tag string) func(*history.Operation) {
	return func(o *history.Operation) { o.ETag = tag }
}

// want is the expected verdict on a story.
type want struct {
	outcome     Outcome
	checked     int // -1: any
	violations  int
	unjudgeable int
	reason      string // part of Verdict.Reason
	cause       string // part of the first Evidence.Cause
	sentence    string // part of the first Evidence.Sentence
	fact        string // "name: value" of some fact, or part of it
}

type storyCase struct {
	name  string
	story *story
	want  want
}

func checkStories(t *testing.T, invariant string, cases []storyCase) {
	t.Helper()
	seen := map[Outcome]bool{}
	for _, c := range cases {
		seen[c.want.outcome] = true
		t.Run(c.name, func(t *testing.T) { c.want.check(t, verdictOf(t, c.story.h, invariant)) })
	}
	for _, o := range []Outcome{OutcomePass, OutcomeFail, OutcomeInconclusive} {
		if !seen[o] {
			t.Errorf("no story in which %s comes to %s", invariant, o)
		}
	}
}

// signed is a story and one field of the signature of its violations.
type signed[T comparable] struct {
	story *story
	want  T
}

// checkSigned expects that the violations of an invariant in each story have one signature.
func checkSigned[T comparable](t *testing.T, invariant string, field func(Signature) T, cases map[string]signed[T]) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := field(signatureOf(t, c.story, invariant)); got != c.want {
				t.Errorf("signed with %+v, want %+v", got, c.want)
			}
		})
	}
}

func signatureOf(t *testing.T, s *story, invariant string) Signature {
	t.Helper()
	v := verdictOf(t, s.h, invariant)
	if len(v.Evidence) != 1 {
		t.Fatalf("%d groups of violations, want 1: %+v", len(v.Evidence), v)
	}
	return v.Evidence[0].Signature
}

func extensionOf(s Signature) Extension { return s.Extension }
func setupOf(s Signature) string        { return s.Setup }

// checkWrong expects violations of some invariants in the stories with true, and in no others.
func checkWrong(t *testing.T, cases map[string]signed[bool], invariants ...string) {
	t.Helper()
	for name, c := range cases {
		for _, invariant := range invariants {
			if v := verdictOf(t, c.story.h, invariant); (v.Violations > 0) != c.want {
				t.Errorf("%s: %s has %d violations, want some: %t", name, invariant, v.Violations, c.want)
			}
		}
	}
}

func verdictOf(t *testing.T, h *history.History, invariant string) Verdict {
	t.Helper()
	for _, v := range Judge(h) {
		if v.Name == invariant {
			return v
		}
	}
	t.Fatalf("no verdict of %s", invariant)
	return Verdict{}
}

func (w want) check(t *testing.T, v Verdict) {
	t.Helper()
	if v.Outcome != w.outcome || v.Violations != w.violations || v.Unjudgeable != w.unjudgeable || w.checked >= 0 && v.Checked != w.checked {
		t.Errorf("outcome %s, checked %d, violations %d, unjudgeable %d; want %s, %d, %d, %d\nreason: %s\nevidence: %+v",
			v.Outcome, v.Checked, v.Violations, v.Unjudgeable, w.outcome, w.checked, w.violations, w.unjudgeable, v.Reason, v.Evidence)
	}
	if !strings.Contains(v.Reason, w.reason) || (v.Outcome == OutcomeInconclusive) != (v.Reason != "") {
		t.Errorf("reason %q, want %q in it", v.Reason, w.reason)
	}
	if w.cause+w.sentence != "" && len(v.Evidence) == 0 {
		t.Fatal("no evidence")
	}
	if len(v.Evidence) > 0 && (!strings.Contains(v.Evidence[0].Cause, w.cause) || !strings.Contains(v.Evidence[0].Sentence, w.sentence)) {
		t.Errorf("cause %q, want %q in it\nsentence %q, want %q in it", v.Evidence[0].Cause, w.cause, v.Evidence[0].Sentence, w.sentence)
	}
	if w.fact != "" && !slices.ContainsFunc(v.Facts, func(f Fact) bool { return strings.Contains(f.Name+": "+f.Value, w.fact) }) {
		t.Errorf("no fact %q in %v", w.fact, v.Facts)
	}
}
