package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestTimeline(t *testing.T) {
	at := func(server string, s float64, s2 *story) string {
		span := NewFacts(s2.h).byName[server].line.at(sec(s))
		if span.up {
			return "up, " + span.phase.String()
		}
		return span.phase.String()
	}
	for _, c := range []struct {
		name  string
		story *story
		at    float64
		want  string
	}{
		{"before the first start", blank().start("a", 5, newDoc), 4, "down"},
		{"starting", blank().start("a", 5, newDoc), 5.5, "starting"},
		{"ready", blank().start("a", 5, newDoc), 6, "up, ready"},
		{"paused", blank().start("a", 5, newDoc).pause("a", 10, 20), 10, "up, paused"},
		{"resumed", blank().start("a", 5, newDoc).pause("a", 10, 20), 20, "up, ready"},
		{"paused while starting", blank().state("a", 5, history.StateStarting).pause("a", 6, 8), 7, "paused"},
		{"resumed while starting", blank().state("a", 5, history.StateStarting).pause("a", 6, 8), 8, "starting"},
		{"stopping", blank().start("a", 5, newDoc).stop("a", 10), 10.5, "stopping"},
		{"stopped", blank().start("a", 5, newDoc).stop("a", 10), 11, "down"},
		{"killed while paused", blank().start("a", 5, newDoc).state("a", 10, history.StatePaused).kill("a", 12), 13, "down"},
		{"a resume after the end", blank().start("a", 5, newDoc).kill("a", 12).state("a", 13, history.StateResumed), 14, "down"},
		{"no record", blank(), 10, "in an unknown state"},
		{"a first record that is no start", blank().state("a", 10, history.StateReady), 9, "in an unknown state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := at("a", c.at, c.story); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestEarlierIncarnationEndsLate(t *testing.T) {
	s := blank().start("a", 0, oldDoc).start("a", 10, newDoc)
	s.h.Lifecycle = append(s.h.Lifecycle, history.Lifecycle{Server: "a", Incarnation: 1, State: history.StateStopped, At: sec(20)})
	if span := NewFacts(s.h).byName["a"].line.at(sec(25)); span.phase != phaseReady || span.incarnation != 2 {
		t.Errorf("%s, incarnation %d", span.phase, span.incarnation)
	}
}

func TestClaims(t *testing.T) {
	grown := doc("grown", line(pods), line(widgets), line(gadgets), line(ghosts))
	s := blank().start("a", 0, newDoc).served("a", 50, grown).pause("a", 60, 70).stop("a", 80).startUnknown("a", 90).served("a", 100, oldDoc).kill("a", 120)
	f := NewFacts(s.h)
	for _, c := range []struct {
		name     string
		from, to float64
		gvr      history.GVR
		want     claim
		since    float64
	}{
		{"before it started", -5, -4, gadgets, claimAbsent, 0},
		{"before its document is known", 0.5, 0.6, gadgets, claimUnknown, 0},
		{"serves it", 10, 20, gadgets, claimYes, 1},
		{"serves it before and after its document changed", 40, 55, gadgets, claimYes, 1},
		{"serves it while paused", 61, 65, gadgets, claimYes, 1},
		{"does not serve it", 10, 20, ghosts, claimNo, 0},
		{"begins to serve it", 40, 55, ghosts, claimUnknown, 0},
		{"serves it since its document changed", 55, 56, ghosts, claimYes, 50},
		{"stops", 79, 80.5, gadgets, claimUnknown, 0},
		{"while stopping it may", 80.2, 80.5, gadgets, claimUnknown, 0},
		{"while stopping it surely does not", 80.2, 80.5, history.GVR{Group: "x", Version: "v1", Resource: "y"}, claimNo, 0},
		{"has stopped", 82, 83, gadgets, claimAbsent, 0},
		{"a new start forgets", 95, 96, gadgets, claimUnknown, 0},
		{"the new start is an old version", 105, 106, gadgets, claimNo, 0},
		{"was killed", 130, 131, widgets, claimAbsent, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := f.resource(key{GVR: c.gvr}).during(f.byName["a"], window{sec(c.from), sec(c.to)})
			if got.claim != c.want || c.since != 0 && got.from != sec(c.since) {
				t.Errorf("claim %d since %s, want %d since %gs", got.claim, got.from, c.want, c.since)
			}
		})
	}
	if lost := f.resource(key{GVR: widgets}).during(f.byName["a"], window{sec(130), sec(131)}).lost; lost != history.StateKilled {
		t.Errorf("what a killed server served: lost %q", lost)
	}
}

// The run sees a change of documents only afterwards. Between the last sight of the old document
// and the first sight of the new one, the differences between them are unknown.
func TestClaimsWhileADocumentChanges(t *testing.T) {
	grown := doc("grown", line(pods), line(widgets), line(gadgets), line(ghosts))
	f := NewFacts(tell().changed("a", 40, 50, grown).pause("a", 45, 47).changed("b", 48, 48, newDoc).changed("c", 0.5, 60, newDoc).changed("c", 55, 70, newDoc).h)
	for _, c := range []struct {
		name, server string
		from, to     float64
		gvr          history.GVR
		want         claim
		since        float64
	}{
		{"before it", "a", 38, 39.9, ghosts, claimNo, 0},
		{"what appears", "a", 41, 42, ghosts, claimUnknown, 0},
		{"what appears, at the last sight of the old document", "a", 39, 40, ghosts, claimUnknown, 0},
		{"what appears, while paused", "a", 45.5, 46, ghosts, claimUnknown, 0},
		{"what appears, since it is seen", "a", 50, 51, ghosts, claimYes, 50},
		{"what remains", "a", 38, 60, gadgets, claimYes, 1},
		{"what neither has", "a", 38, 60, history.GVR{Group: "x", Version: "v1", Resource: "y"}, claimNo, 0},
		{"an exact change, before", "b", 47, 47.9, gadgets, claimNo, 0},
		{"an exact change, after", "b", 48, 49, gadgets, claimYes, 48},
		{"confirmed before it was first seen", "c", 0.6, 0.7, gadgets, claimUnknown, 0},
		{"confirmed before it was first seen, after that", "c", 2, 3, gadgets, claimUnknown, 0},
		{"the same document again is no change", "c", 60, 80, gadgets, claimYes, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := f.resource(key{GVR: c.gvr}).during(f.byName[c.server], window{sec(c.from), sec(c.to)})
			if got.claim != c.want || c.since != 0 && got.from != sec(c.since) {
				t.Errorf("claim %d since %s, want %d since %gs", got.claim, got.from, c.want, c.since)
			}
		})
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct {
		name  string
		story *story
		want  reach
	}{
		{"nothing", tell(), reachOpen},
		{"cut", tell().cut("b", "a", 10, 30), reachClosed},
		{"cut the other way", tell().cut("a", "b", 10, 30), reachOpen},
		{"cut from another server", tell().cut("c", "a", 10, 30), reachOpen},
		{"cut from everywhere", tell().cut("", "a", 10, 30), reachClosed},
		{"healed before", tell().cut("b", "a", 10, 19), reachOpen},
		{"healed shortly before", tell().cut("b", "a", 10, 19.95), reachPartial},
		{"cut shortly before", tell().cut("b", "a", 19.95, 30), reachPartial},
		{"healed meanwhile", tell().cut("b", "a", 10, 20.5), reachPartial},
		{"two cuts, one after the other", tell().cut("b", "a", 10, 20.5).cut("b", "a", 20.5, 30), reachClosed},
		{"cut, then paused", tell().cut("b", "a", 10, 20.5).pause("a", 20.4, 30), reachClosed},
		{"latency", tell().fault("latency", "b", "a", 10, 30, false), reachOpen},
		{"reset", tell().fault("reset", "b", "a", 10, 30, false), reachPartial},
		{"paused", tell().pause("a", 10, 30), reachClosed},
		{"killed", tell().kill("a", 10), reachClosed},
		{"stopping", tell().stop("a", 20.5), reachPartial},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, obstacle := NewFacts(c.story.h).reach("b", "a", window{sec(20), sec(21)})
			if got != c.want || (got == reachOpen) != (obstacle == "") {
				t.Errorf("reach %d (%s), want %d", got, obstacle, c.want)
			}
		})
	}
}

// After a graceful stop, peers know that the server is gone. A server that cannot delete its
// leases counts as killed.
func TestUnnoticedEnds(t *testing.T) {
	stopped, killed := history.StateStopped, history.StateKilled
	for _, c := range []struct {
		name  string
		story *story
		want  history.State
	}{
		{"in good order", tell().stop("c", 20), stopped},
		{"cut off from etcd", tell().cut("c", "etcd", 10, 30).stop("c", 20), killed},
		{"everybody is", tell().cut("", "etcd", 10, 30).stop("c", 20), killed},
		{"cut off while it was stopping", tell().cut("c", "etcd", 20.5, 30).stop("c", 20), killed},
		{"cut off until it was stopping", tell().cut("c", "etcd", 10, 20.5).stop("c", 20), killed},
		{"cut off before", tell().cut("c", "etcd", 10, 19).stop("c", 20), stopped},
		{"cut off afterwards", tell().cut("c", "etcd", 22, 30).stop("c", 20), stopped},
		{"etcd is slow", tell().fault("latency", "c", "etcd", 10, 30, false).stop("c", 20), stopped},
		{"another one is cut off from etcd", tell().cut("b", "etcd", 10, 30).stop("c", 20), stopped},
		{"cut off from the others", tell().cut("c", "", 10, 30).cut("b", "c", 10, 30).stop("c", 20), stopped},
		{"an earlier process was cut off", tell().cut("c", "etcd", 10, 30).stop("c", 20).start("c", 25, oldDoc).stop("c", 40), stopped},
		{"an earlier process was cut off, and this one has no record of stopping",
			tell().cut("c", "etcd", 10, 30).stop("c", 20).start("c", 25, oldDoc).state("c", 40, stopped), stopped},
		{"no record of stopping, long after a cut", tell().cut("c", "etcd", 10, 30).state("c", 40, stopped), stopped},
		{"no record of stopping, cut off at its end", tell().cut("c", "etcd", 10, 50).state("c", 40, stopped), killed},
		{"crashed while cut off", tell().cut("c", "etcd", 10, 30).state("c", 20, history.StateCrashed), history.StateCrashed},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NewFacts(c.story.h).byName["c"].line.at(sec(100)).left; got != c.want {
				t.Errorf("left %q, want %q", got, c.want)
			}
		})
	}
}

func TestQuietWindows(t *testing.T) {
	s := tell().step("upgrade c", 50, 60).stop("c", 50).start("c", 55, newDoc).cut("a", "b", 100, 120).served("a", 150, oldDoc)
	s.h.Steps = append(s.h.Steps, history.Step{Sentence: "sweep", Start: sec(30), End: sec(40)})
	f := NewFacts(s.h)
	want := []window{{sec(11), sec(50)}, {sec(70), sec(100)}, {sec(130), sec(150)}, {sec(160), forever}}
	if len(f.steady) != len(want) {
		t.Fatalf("%d steady windows, want %d", len(f.steady), len(want))
	}
	for i, q := range f.steady {
		if q.window != want[i] || !q.truth.known {
			t.Errorf("window %d: %s to %s, known %t; want %s to %s", i, q.from, q.to, q.truth.known, want[i].from, want[i].to)
		}
	}
	if f.steady[0].truth.sum == f.steady[1].truth.sum || f.steady[1].truth.sum != f.steady[2].truth.sum {
		t.Error("the truths before and after the upgrade must differ, and those before and after the cut must be equal")
	}
	if f.steadyAt(window{sec(49), sec(50)}) != nil || f.steadyAt(window{sec(49), sec(49.9)}) != f.steady[0] {
		t.Error("an operation is in a steady window only if the window contains all of it")
	}
}

func TestAChangeOfDocumentsIsNotQuiet(t *testing.T) {
	f := NewFacts(tell().changed("a", 100, 120, oldDoc).h)
	want := []window{{sec(11), sec(100)}, {sec(130), forever}}
	if len(f.steady) != 2 || f.steady[0].window != want[0] || f.steady[1].window != want[1] || !f.steady[0].truth.known || !f.steady[1].truth.known {
		t.Errorf("steady windows %+v, want %v", f.steady, want)
	}
}

func TestTimesDoNotWrap(t *testing.T) {
	if got := later(forever-1, 10); got != forever {
		t.Errorf("%d", got)
	}
	if got := later(beginning+1, -10); got != beginning {
		t.Errorf("%d", got)
	}
}
