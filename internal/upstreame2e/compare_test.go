package upstreame2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/reports"
)

// A wrong result on the path is seen: it is planted in one spec after the other.
func TestAPlantedFailureIsSeen(t *testing.T) {
	chosen := []string{"a", "b", "c"}
	passed := func() map[string]Result {
		all := map[string]Result{}
		for _, name := range chosen {
			all[name] = Result{Outcome: reports.SpecPassed}
		}
		return all
	}
	in := Circumstances{Path: reports.PathOld, Subject: "builtin", From: "v1.36.3", Tests: "v1.37.1"}
	conclude := func(on, direct map[string]Result, c Catalogue) reports.UpstreamTests {
		u := reports.UpstreamTests{Metadata: reports.UpstreamMetadata{Path: in.Path}, Specs: Compare(chosen, Results{Specs: on}, direct, c, in)}
		u.Conclude()
		return u
	}
	if u := conclude(passed(), passed(), nil); u.Result != reports.ResultPassed {
		t.Fatalf("nothing was planted: %s, %s", u.Result, u.Sentence)
	}
	for i, name := range chosen {
		for outcome, want := range map[reports.SpecOutcome]reports.Result{
			reports.SpecFailed: reports.ResultFailed, reports.SpecNotRun: reports.ResultInconclusive, reports.SpecSkipped: reports.ResultPassed,
		} {
			on := passed()
			on[name] = Result{Outcome: outcome, Message: "planted"}
			u := conclude(on, passed(), nil)
			if u.Result != want || u.Specs[i].Message != "planted" {
				t.Errorf("%s %s: %s (%s), message %q; want %s", name, outcome, u.Result, u.Sentence, u.Specs[i].Message, want)
			}
			if u.Specs[i].Class == reports.ClassPassed {
				t.Errorf("%s %s looks passed", name, outcome)
			}
		}
		missing := passed()
		delete(missing, name)
		if u := conclude(missing, passed(), nil); u.Result != reports.ResultInconclusive {
			t.Errorf("%s left no result: %s, want inconclusive", name, u.Result)
		}
		failed := passed()
		failed[name] = Result{Outcome: reports.SpecFailed}
		if u := conclude(failed, missing, nil); u.Result != reports.ResultInconclusive || u.Specs[i].Class != reports.ClassUnknown {
			t.Errorf("%s failed, and was not run directly: %s, %s; want inconclusive", name, u.Result, u.Specs[i].Class)
		}
		if u := conclude(failed, failed, nil); u.Result != reports.ResultPassed || u.Specs[i].Class != reports.ClassDirectly {
			t.Errorf("%s fails directly as well: %s, %s", name, u.Result, u.Specs[i].Class)
		}
		excuse := Catalogue{{Spec: name, Reason: "known"}}
		if u := conclude(failed, passed(), excuse); u.Result != reports.ResultPassed || u.Specs[i].Class != reports.ClassExpected {
			t.Errorf("%s is expected to fail: %s, %s", name, u.Result, u.Specs[i].Class)
		}
		other := Catalogue{{Spec: chosen[(i+1)%len(chosen)], Reason: "known"}}
		if u := conclude(failed, passed(), other); u.Result != reports.ResultFailed {
			t.Errorf("%s failed, and another is expected to: %s, want failed", name, u.Result)
		}
	}
}

func TestSavedResultsAreThoseOfTheEarlierSuite(t *testing.T) {
	u := reports.UpstreamTests{Specs: []reports.UpstreamSpec{{Name: "a", Outcome: reports.SpecFailed, Message: "m"}, {Name: "b", Outcome: reports.SpecPassed}}}
	want := map[string]Result{"a": {Outcome: reports.SpecFailed, Message: "m"}, "b": {Outcome: reports.SpecPassed}}
	if diff := cmp.Diff(want, Saved(u)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
