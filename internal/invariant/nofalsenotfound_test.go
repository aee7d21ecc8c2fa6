package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestNoFalseNotFound(t *testing.T) {
	const name = "NoFalseNotFound"
	// Only server a is new, and it starts late.
	late := func() *story { return blank(name).start("b", 0, oldDoc).start("c", 0, oldDoc).start("a", 20, newDoc) }
	checkStories(t, name, []storyCase{
		{"every request is passed on", tell(name).askEvery(20, 29, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 10, fact: "skewed operations judged: 10"}},
		{"404 though the new server could be reached", tell(name).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 though a could be reached", sentence: "a (v1) has served it since 1s and could be reached"}},
		{"404 that broke off before it named its subject", tell(name).ask(20, "b", gadgets, 404, failed(history.FailureReset), unsaid),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"404 though the new server is only cut off", tell(name).cut("b", "a", 15, 40).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "out of reach", sentence: "fault 1, cut b→a since 15s"}},
		{"404 though the new server is only paused", tell(name).pause("a", 15, 40).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "out of reach", sentence: "a paused since 15s"}},
		{"404 though the new server is paused, and its lease has not expired yet", tell(name).pause("a", 15, 5000).ask(3600, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "out of reach"}},
		{"a paused server whose lease has expired may be dead to its peers", tell(name).pause("a", 15, 5000).ask(20, "b", gadgets, 503).ask(3610, "b", gadgets, 404),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"so may a server behind a cut whose lease has expired", tell(name).cut("a", "etcd", 15, 5000).ask(20, "b", gadgets, 200).ask(4900, "b", gadgets, 404),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"404 soon after such a server has come back", tell(name).pause("a", 15, 5000).ask(20, "b", gadgets, 503).ask(5009, "b", gadgets, 404),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"404 long after it has come back", tell(name).pause("a", 15, 5000).ask(5011, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"only the link b→a is cut and c could serve it", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).
			cut("b", "a", 15, 40).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "though c could be reached"}},
		{"a cut of a→b does not affect requests of b", tell(name).cut("a", "b", 15, 40).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "could be reached"}},
		{"404 for what the server serves itself", tell(name).ask(20, "a", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "though the server itself serves it"}},
		{"404 for what the server itself stops serving soon afterwards", tell(name).ask(20, "a", gadgets, 200).ask(49, "a", gadgets, 404).changed("a", 50, 51, oldDoc),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"404 for what it stops serving much later", tell(name).ask(39, "a", gadgets, 404).changed("a", 50, 51, oldDoc),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "though the server itself serves it"}},
		{"404 for what it serves itself until it is stopped", tell(name).ask(49, "a", gadgets, 404).stop("a", 50),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "though the server itself serves it"}},
		{"404 while the new server is stopping and serves on", tell(name).drain("a", 50, 70, 75).ask(50.3, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 though a could be reached", sentence: "also while it was stopping"}},
		{"404 at the last instant at which it was seen to serve", tell(name).drain("a", 50, 70, 75).ask(69.98, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 when it may have ended", tell(name).drain("a", 50, 70, 75).ask(60, "b", gadgets, 200).ask(69.995, "b", gadgets, 404).ask(72, "b", gadgets, 404),
			want{outcome: OutcomeInconclusive, checked: 1, unjudgeable: 2, reason: "more than half"}},
		{"404 when it has ended", tell(name).drain("a", 50, 70, 75).ask(60, "b", gadgets, 200).ask(76, "b", gadgets, 404),
			want{outcome: OutcomePass, checked: 1}},
		{"404 while it is stopping, and is not seen to serve", tell(name).ask(20, "b", gadgets, 200).stop("a", 50).ask(50.1, "b", gadgets, 404),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"404 of a server that is stopping itself", tell(name).ask(20, "b", gadgets, 200).drain("b", 50, 70, 75).ask(60, "b", gadgets, 404),
			want{outcome: OutcomePass, checked: 1}},
		{"404 while it serves on and is out of reach", tell(name).cut("b", "a", 45, 80).drain("a", 50, 70, 75).ask(60, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "served it, out of reach"}},
		{"404 from merged discovery itself", tell(name).ask(20, "b", history.GVR{}, 404, verb(history.VerbDiscovery)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 for the document of a group version that a peer serves", tell(name).ask(20, "b", history.GVR{Group: "apps", Version: "v2"}, 404),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"404 for a subresource that only the new server has", tell(name).ask(20, "b", pods, 404, sub("resize")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "v1/pods/resize"}},
		{"a subresource that nobody has", tell(name).ask(20, "b", pods, 404, sub("nosuch")),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a missing object is no missing resource", tell(name).ask(20, "b", gadgets, 404, missingObject),
			want{outcome: OutcomePass, checked: 1}},
		{"503 while the peer is cut off", tell(name).cut("b", "a", 15, 40).ask(20, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 1}},
		{"no server serves it", tell(name).ask(20, "b", ghosts, 404),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"404 while knowledge of the new server spreads", tell(name).ask(5, "b", gadgets, 404).ask(20, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"the last instant at which 404 is tolerated", tell(name).ask(10.999, "b", gadgets, 404).ask(11, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1}},
		{"the first instant at which it is not", tell(name).ask(11, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the asked server has only just become ready", tell(name).stop("b", 30).start("b", 33, oldDoc).ask(35, "b", gadgets, 404).ask(45, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"a restart forgets, behind a cut, for too long", tell(name).cut("b", "a", 15, 100).stop("b", 30).start("b", 33, oldDoc).askEvery(45, 54, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 10, violations: 10, cause: "out of reach"}},
		{"an unrelated restart makes the asked server forget", tell(name).cut("b", "a", 15, 100).askEvery(20, 29, "b", gadgets, 503).
			stop("c", 30).start("c", 33, oldDoc).askEvery(40, 49, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 20, violations: 10, sentence: "asked at 40s"}},
		{"404 soon after the asked server was cut off from etcd, when the new one came", late().cut("b", "etcd", 15, 40).ask(49, "b", gadgets, 404).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"404 long after that", late().cut("b", "etcd", 15, 40).ask(51, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 soon after the asked server was cut off from etcd, which came too soon to have heard of the new one",
			late().cut("b", "etcd", 25, 40).ask(49, "b", gadgets, 404).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"404 soon after two such cuts", late().cut("b", "etcd", 15, 40).cut("b", "etcd", 45, 60).ask(69, "b", gadgets, 404).ask(80, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"404 while the asked server is cut off from etcd, having had the time to hear of the new one", late().cut("b", "etcd", 35, 60).ask(50, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 soon after the new server was cut off from etcd", late().cut("a", "etcd", 25, 40).ask(49, "b", gadgets, 404).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"404 long after that", late().cut("a", "etcd", 25, 40).ask(51, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 soon after another one was cut off from etcd", late().cut("c", "etcd", 15, 40).ask(45, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 soon after etcd was slow", late().fault("latency", "b", "etcd", 15, 40, false).ask(45, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 soon after the asked server was cut off from etcd, and another one has long served it",
			blank(name).start("b", 0, oldDoc).start("c", 0, newDoc).start("a", 20, newDoc).cut("b", "etcd", 15, 40).ask(45, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 soon after the asked server was cut off from etcd as soon as it had become ready",
			tell(name).stop("b", 30).start("b", 33, oldDoc).cut("b", "etcd", 36, 60).ask(69, "b", gadgets, 404).ask(80, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"404 for what the asked server no longer serves, and another server still serves",
			blank(name).start("a", 0, newDoc).start("b", 0, newDoc).start("c", 0, oldDoc).changed("b", 45, 50, oldDoc).ask(60, "b", gadgets, 404).ask(61, "c", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"404 for what the asked server no longer serves, and another server has begun to serve since then",
			blank(name).start("a", 0, newDoc).start("b", 0, newDoc).start("c", 0, oldDoc).changed("b", 45, 50, oldDoc).served("a", 50, oldDoc).served("a", 60, newDoc).ask(71, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 for what the asked server no longer serves, another server has just begun to serve, and a third may not have noticed",
			blank(name).start("a", 0, newDoc).start("b", 0, newDoc).start("c", 0, newDoc).changed("b", 45, 50, oldDoc).served("a", 50, oldDoc).served("a", 60, newDoc).
				ask(61, "b", gadgets, 404).ask(90, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"404 for what an earlier process of the asked server served",
			blank(name).start("a", 0, newDoc).start("b", 0, newDoc).start("c", 0, oldDoc).stop("b", 30).start("b", 33, oldDoc).ask(60, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 for what another server no longer serves", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).served("c", 50, oldDoc).ask(60, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 while it disappeared, at an unknown time", tell(name).changed("a", 20, 30, oldDoc).ask(15, "b", gadgets, 200).ask(25, "b", gadgets, 404).ask(25, "a", gadgets, 404).ask(35, "a", gadgets, 404),
			want{outcome: OutcomeInconclusive, checked: 1, unjudgeable: 2, reason: "more than half"}},
		{"404 before it disappeared", tell(name).changed("a", 20, 30, oldDoc).ask(19, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 before it disappeared at a known instant", tell(name).served("a", 30, oldDoc).ask(25, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 while it appeared, at an unknown time", tell(name).changed("a", 20, 30, doc("grown", append(newDoc.Resources, line(ghosts))...)).
			ask(15, "b", gadgets, 200).ask(16, "b", gadgets, 200).ask(25, "b", ghosts, 404).ask(25, "a", ghosts, 404).ask(45, "b", ghosts, 200),
			want{outcome: OutcomePass, checked: 3, unjudgeable: 2}},
		{"404 long after it appeared", tell(name).changed("a", 20, 30, doc("grown", append(newDoc.Resources, line(ghosts))...)).ask(45, "b", ghosts, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 for what stayed while something else appeared", tell(name).changed("a", 20, 30, doc("grown", append(newDoc.Resources, line(ghosts))...)).ask(25, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the server that served it was killed", tell(name).kill("a", 30).ask(40, "b", gadgets, 404),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the server that served it left while the request was under way", tell(name).stop("a", 30).ask(29.9, "b", gadgets, 404, took(0.5)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"the asked server was told to stop while the request was under way", tell(name).stop("b", 30).ask(29.9, "b", gadgets, 404, took(0.5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the asked server is not ready yet", tell(name).stop("b", 30).start("b", 33, oldDoc).ask(33.5, "b", gadgets, 404),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the new server's document is not known", blank(name).startUnknown("a", 0).start("b", 0, oldDoc).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown for all operations in question (1)"}},
		{"a document of the earlier incarnation says nothing", tell(name).stop("a", 30).startUnknown("a", 33).askEvery(50, 52, "b", gadgets, 404).ask(20, "b", gadgets, 200),
			want{outcome: OutcomeInconclusive, checked: 1, unjudgeable: 3, reason: "more than half"}},
		{"the proxy of the asked server was switched off", tell(name).off("b", 15, 40).ask(20, "b", gadgets, 404).ask(50, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1}},
		{"404 long after it was switched on again", tell(name).off("b", 15, 40).ask(50, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 though only the proxy of the one that serves it was switched off", tell(name).off("a", 15, 40).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 for what a server whose proxy is off serves itself", tell(name).off("a", 15, 40).ask(20, "a", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"404 for a server that cannot be trusted", tell(name).fault(history.FaultMisconfiguration, "b", "a", 15, 40, true).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "out of reach", sentence: "misconfiguration b→a"}},
		{"no answer is not a 404", tell(name).ask(20, "b", gadgets, 0, failed(history.FailureReset)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"refused before it was routed", tell(name).ask(20, "b", gadgets, 403),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the client canceled the request after the beginning of the answer", tell(name).ask(20, "b", gadgets, 200, failed(history.FailureCanceled)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"too few skewed operations", tell(name).need(history.Pressure{Skewed: 50}).askEvery(20, 31, "b", gadgets, 200),
			want{outcome: OutcomeInconclusive, checked: 12, reason: "12 of at least 50 skewed operations"}},
		{"canceled requests do not count as pressure", tell(name).need(history.Pressure{Skewed: 2}).ask(20, "b", gadgets, 200).ask(21, "b", gadgets, 0, failed(history.FailureCanceled)),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "1 of at least 2 skewed operations"}},
		{"too little pressure does not hide a violation", tell(name).need(history.Pressure{Skewed: 50}).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a fault that touched nothing", toothless(tell(name).cut("b", "a", 15, 40)).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "fault 1, cut b→a, had no effect"}},
		{"the scenario is about something else", tell().need(history.Pressure{Skewed: 50}).ask(20, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1}},
		{"a document without the core group says nothing about it", blank(name).start("a", 0, newDoc).start("b", 0, mergedDoc).start("c", 0, mergedDoc).ask(20, "b", history.GVR{Version: "v1", Resource: "nodes"}, 404),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
	})
}

func toothless(s *story) *story {
	for i := range s.h.Faults {
		s.h.Faults[i].Evidence = history.Evidence{}
	}
	return s
}

// Five thousand similar violations give only a few pieces of evidence.
func TestEvidenceIsGrouped(t *testing.T) {
	s := tell("NoFalseNotFound")
	for i := range 2500 {
		s.ask(100+float64(i)/100, "b", gadgets, 404).ask(100+float64(i)/100, "c", pods, 404, sub("resize"))
	}
	v := verdictOf(t, s.h, "NoFalseNotFound")
	if v.Violations != 5000 || v.Kinds != 2 || len(v.Evidence) != 2 {
		t.Fatalf("%d violations of %d kinds, %d shown", v.Violations, v.Kinds, len(v.Evidence))
	}
	e := v.Evidence[0]
	if e.Asked != "b" || e.Count != 2500 || e.First != sec(100.01) || e.Last < sec(124.9) || len(e.Operations) != 1 || e.ResourcesTotal != 1 || e.Resources[0] != gadgets.String() {
		t.Errorf("first group: %+v", e)
	}
	if len(e.Candidates) != 1 || e.Candidates[0].Server != "a" || !e.Candidates[0].Reachable || e.Candidates[0].Since != sec(1) {
		t.Errorf("candidates: %+v", e.Candidates)
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	s := blank()
	d := doc("many", line(pods))
	for i := range 3 * MaxEvidence {
		d.Resources = append(d.Resources, line(history.GVR{Group: "g", Version: "v1", Resource: string(rune('a' + i))}))
	}
	s.start("a", 0, d).start("b", 0, oldDoc).start("c", 0, oldDoc)
	for i, r := range d.Resources[1:] {
		s.ask(float64(20+i), "b", r.GVR, 404)
		s.fault("cut", "b", "a", float64(20+i)-0.5, float64(20+i)+0.4, true)
	}
	v := verdictOf(t, s.h, "NoFalseNotFound")
	if v.Kinds != 1 || v.Evidence[0].ResourcesTotal != 3*MaxEvidence || len(v.Evidence[0].Resources) != MaxListed {
		t.Errorf("kinds %d, evidence %+v", v.Kinds, v.Evidence)
	}
}
