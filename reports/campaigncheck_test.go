package reports

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
)

// ReadCampaign refuses a campaign that contradicts itself. The test tries the limit of each
// contradiction.
func TestContradictionsOfACampaign(t *testing.T) {
	found := func(name, file, repro string) func(*Campaign) {
		return func(c *Campaign) {
			c.Findings = []CampaignFinding{{Invariant: name, Grade: invariant.GradeCore, File: file, Repro: []byte(repro)}}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Campaign)
		want   string // part of the error; "": none
	}{
		{"as it was written", func(*Campaign) {}, ""},
		{"two parts", func(c *Campaign) { c.Parts = append(c.Parts, Part{}) }, ""},
		{"no part", func(c *Campaign) { c.Parts, c.Schedules = nil, 0 }, "its 0 parts"},
		{"another sum", func(c *Campaign) { c.Parts[0].Schedules-- }, "the file was altered"},
		{"an invariant more", func(c *Campaign) { c.Invariants = append(c.Invariants, InvariantCount{}) }, "this skewproof knows"},
		{"an invariant less", func(c *Campaign) { c.Invariants = c.Invariants[1:] }, "this skewproof knows"},
		{"another invariant", func(c *Campaign) { c.Invariants[1].Name = "x" }, `its invariant 2 is "x"`},
		{"a kind of requests more", func(c *Campaign) { c.Invariants[0].Requests = append(c.Invariants[0].Requests, RequestCount{}) }, "kinds of requests"},
		{"a finding", found("NoLoop", "a.json", "{}"), ""},
		{"real servers, and random", func(c *Campaign) { c.Real = &RealCampaign{} }, `its method is "random"`},
		{"no real servers", func(c *Campaign) { c.Method = MethodReal }, `its method is "real"`},
		{"real servers", func(c *Campaign) { c.Method, c.Real = MethodReal, &RealCampaign{} }, ""},
		{"a run elsewhere", func(c *Campaign) {
			c.Method, c.Real = MethodReal, &RealCampaign{}
			c.Findings = []CampaignFinding{{Invariant: "NoLoop", Grade: invariant.GradeCore, Real: &RealFinding{Run: "../x"}}}
		}, "on real servers is wrong"},
		{"more confirmed than repeated", func(c *Campaign) {
			c.Method, c.Real = MethodReal, &RealCampaign{}
			c.Findings = []CampaignFinding{{Invariant: "NoLoop", Grade: invariant.GradeCore, Real: &RealFinding{Confirmed: 2, Repeated: 1}}}
		}, "on real servers is wrong"},
		{"a finding without a file", found("NoLoop", "", ""), ""},
		{"a finding of no invariant", found("NoLop", "a.json", "{}"), `the invariant "NoLop"`},
		{"a finding without the file that it has", found("NoLoop", "", "{}"), "not a plain name"},
		{"a file above", found("NoLoop", "..", "{}"), "not a plain name"},
		{"a file elsewhere", found("NoLoop", "a/b", ""), "not a plain name"},
		{"a file elsewhere, on Windows", found("NoLoop", `a\b`, ""), "not a plain name"},
		{"a file with dots", found("NoLoop", "..a.json", "{}"), ""},
	} {
		campaign := searched(c.change)
		err := campaign.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	altered := searched(func(*Campaign) {})
	altered.Verdict.Outcome = invariant.OutcomePass
	if err := altered.check(); err == nil || !strings.Contains(err.Error(), "the file was altered") {
		t.Errorf("another verdict: %v", err)
	}
}
