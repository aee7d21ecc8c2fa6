package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestGroupVersionsDescribed(t *testing.T) {
	const name = "GroupVersionsDescribed"
	v2, newer, absent := versionOf(gadgets).GVR, history.GVR{Group: "newer"}, history.GVR{Group: "none", Version: "v1"}
	grouped := doc("grouped", line(widgets), line(history.GVR{Group: "newer", Version: "v1", Resource: "things"}))
	checkStories(t, name, []storyCase{
		{"a peer's", tell(name).ask(20, "b", v2, 200), want{outcome: OutcomePass, checked: 1}},
		{"a peer's version is denied", tell(name).ask(20, "b", v2, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 though a could be reached", sentence: "as though no server served anything of it"}},
		{"a peer's group is denied", tell(name).served("a", 2, grouped).ask(20, "b", newer, 404), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a group of which the server has another version", tell(name).ask(20, "b", history.GVR{Group: "apps"}, 404), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"its own version, on which NoFalseNotFound rules", tell(name).ask(20, "a", v2, 404), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"503 is no denial", tell(name).cut("b", "a", 15, 40).ask(20, "b", v2, 503), want{outcome: OutcomePass, checked: 1}},
		{"what nobody serves", tell(name).ask(20, "b", absent, 404), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"soon after the peer has come", blank(name).start("b", 0, oldDoc).start("c", 0, oldDoc).start("a", 20, newDoc).ask(25, "b", v2, 404),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"resources do not count", tell(name).ask(20, "b", gadgets, 404), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"merged discovery does not count", tell(name).discover(20, "b", "/apis", mergedDoc), want{outcome: OutcomeInconclusive, reason: notExercised}},
	})
}

// KEP-4020 leaves these documents to each server, so they must not affect the invariants that
// KEP-4020 demands.
func TestDocumentsOfGroupVersionsBreakNothingElse(t *testing.T) {
	v2, absent := versionOf(gadgets).GVR, history.GVR{Group: "none", Version: "v1"}
	about := tell().askEvery(20, 190, "b", v2, 404).askEvery(20, 190, "c", absent, 503).askEvery(20, 190, "a", v2, 200)
	about.h.Run.Pressure = history.Pressure{}
	for _, v := range Judge(about.h) {
		if v.Outcome == OutcomeFail && v.Name != "GroupVersionsDescribed" {
			t.Errorf("%s: %s", v.Name, v.Evidence[0].Sentence)
		}
	}
	if v := verdictOf(t, tell().askEvery(20, 190, "b", v2, 503).h, "Converges"); v.Outcome == OutcomeFail {
		t.Errorf("Converges must not demand that these documents become right: %s", v.Evidence[0].Sentence)
	}
	if v := verdictOf(t, tell().ask(20, "a", v2, 404).h, "NoFalseNotFound"); v.Outcome != OutcomeFail {
		t.Errorf("a server that denies what it serves itself: %s", v.Outcome)
	}
	cut := tell("UnavailableOnPeerFailure").need(history.Pressure{Skewed: 1, Unreachable: 1}).cut("b", "a", 15, 90).askEvery(30, 60, "b", v2, 404)
	if v := verdictOf(t, cut.h, "UnavailableOnPeerFailure"); v.Outcome != OutcomeInconclusive || v.Checked+v.Unjudgeable > 0 {
		t.Errorf("cut off: %s, %d checked", v.Outcome, v.Checked)
	}
}
