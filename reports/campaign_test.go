package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
)

// smallCampaign is a possible result of a search, with something in every section.
func smallCampaign() *Campaign {
	c := &Campaign{
		TypeMeta: OfKind(CampaignKind), SkewproofVersion: "v0.1.0",
		Spec: SearchSpec{Policy: "upstream-1.37", Changes: []string{"Routing.Attempts=3"}, From: "v1.36.3", To: "v1.37.1", Servers: 3,
			Resources: 6, Requests: 20},
		Method: MethodRandom, FirstSeed: 1, Wanted: 20000,
		Parts: []Part{
			{Schedules: 10000, ElapsedSeconds: 10.5, Workers: 2, Machine: "2 CPUs"},
			{Schedules: 10000, ElapsedSeconds: 11, Workers: 4, Machine: "4 CPUs"},
		},
		Complete: true, Schedules: 20000, ElapsedSeconds: 11, SchedulesPerSecond: 1861, PassedOn: 18000,
		Reached: []Reach{{State: "proxied", Schedules: 18000}, {State: "mutual-belief"},
			{State: "crashed", Impossible: "a failed fetch does not end a server"}},
		Invariants: []InvariantCount{
			{
				Name: "NoFalseNotFound", Grade: invariant.GradeCore, Sentence: "No request is told that a resource does not exist.", Exercised: 8000,
				Violated: 240,
				Requests: []RequestCount{{Violated: 200}, {Asked: SubresourceRequest, Violated: 41}, {Asked: ForgedRequest}},
			},
			{Name: "Available", Grade: invariant.GradeExtended, Sentence: "No request fails.", Exercised: 9000, Violated: 12},
			{Name: "NoLoop", Grade: invariant.GradeCore, Sentence: "A request is passed on at most once.", Exercised: 7000},
			{Name: "WatchesLast", Grade: invariant.GradeExtended, Sentence: "A watch lasts."},
		},
		Findings: []CampaignFinding{
			{
				ViolationKind: ViolationKind{Finding: 1, Title: "404 for an unreachable peer after an unrelated server restarts"},
				Invariant:     "NoFalseNotFound", Grade: invariant.GradeCore, Schedules: 240, Seed: 77,
				Sentence: "b was asked at 9s: list resource.k8s.io/v1/devicetaintrules. It answered 404.", Disturbances: 2, Shrunk: true,
				Story: []string{"servers a (v1.37.1), b (v1.36.3), c (v1.36.3)", "1. cut, b→a", "2. restart c",
					"   1s later, ask b: list resource.k8s.io/v1/devicetaintrules"},
				File:    "NoFalseNotFound-1.json",
				Removal: &Removal{To: "reference", Sets: [][]string{{"Knowledge.FailClosed=true"}}, Smallest: true, Schedules: 17, Shown: 12},
				Repro:   json.RawMessage(`{"schema":"skewproof/repro/v1alpha1","invariant":"NoFalseNotFound","sentence":"b → <a>","hash":"0"}`),
			},
			{
				ViolationKind: ViolationKind{Signature: invariant.Signature{Invariant: "Available", Mechanism: invariant.MechanismResource,
					Answer: "503", Reach: invariant.ReachAll}},
				Invariant: "Available", Grade: invariant.GradeExtended, Schedules: 12, Seed: 5, Sentence: "b was asked.",
			},
		},
		Growth: []GrowthPoint{
			{Schedules: 1}, {Schedules: 128, Kinds: 2}, {Schedules: 20000, Kinds: 2},
		},
		Checks:   SelfChecks{Repeated: 200, Differed: 1, FirstDiffered: 300},
		Troubles: []Trouble{{Sentence: "panic: of a test", Schedules: 2, Seed: 9}},
		Verdict:  CampaignVerdict{Outcome: invariant.OutcomeFail, Sentence: "NoFalseNotFound violated, in 1 different ways"},
	}
	return c
}

// everything is a campaign that ran every schedule and found nothing.
func everything() *Campaign {
	c := smallCampaign()
	c.Method, c.Scope = MethodAll, &Scope{Events: 2, Alphabet: []string{"restart a", "restart b"}, Schedules: 20000}
	c.Findings, c.Troubles, c.Checks = nil, nil, SelfChecks{Repeated: 200}
	c.Verdict = CampaignVerdict{Outcome: invariant.OutcomePass, Sentence: "no violation in 20000 schedules"}
	return c
}

func renderCampaign(t *testing.T, c *Campaign) *html.Node {
	t.Helper()
	return parsed(t, WriteCampaignHTML, c)
}

func TestCampaignGolden(t *testing.T) {
	var page, summary bytes.Buffer
	if err := WriteCampaignHTML(&page, smallCampaign()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Campaign{smallCampaign(), everything()} {
		if err := WriteCampaignSummary(&summary, c, SummaryOptions{Dir: "_out"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, got := range map[string]string{CampaignHTML: page.String(), "campaign.txt": summary.String()} {
		golden.Hold(t, filepath.Join("testdata", name), got)
	}
}

func TestThePageOfEverySchedule(t *testing.T) {
	page := text(renderCampaign(t, everything()))
	for _, want := range []string{"restart b", "No schedule violated any invariant.", "all gave the same trace again", "skewproof exhaust"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The page says "all" only if all schedules ran: not for a search that was ended early.
func TestAPartOfEverySchedule(t *testing.T) {
	early := everything()
	early.Complete, early.Schedules = false, 2592
	for name, c := range map[string]struct {
		campaign        *Campaign
		line, lead, not string
	}{
		"ended early": {early, "2,592 of the 20,000 schedules of up to 2", "2,592 of the 20,000 schedules of a bounded number of events on",
			"ll 20,000"},
		"all": {everything(), "ll 20,000 schedules of up to 2", "Every schedule of a bounded number of events on", "of the 20,000"},
	} {
		var summary bytes.Buffer
		if err := WriteCampaignSummary(&summary, c.campaign, SummaryOptions{}); err != nil {
			t.Fatal(err)
		}
		page := text(renderCampaign(t, c.campaign))
		for what, said := range map[string]string{"summary": summary.String(), "page": page} {
			if !strings.Contains(said, c.line) || strings.Contains(said, c.not) {
				t.Errorf("%s: the %s does not say %q, or says %q:\n%s", name, what, c.line, c.not, said)
			}
		}
		if !strings.Contains(page, c.lead) {
			t.Errorf("%s: the page does not begin with %q", name, c.lead)
		}
	}
}

// If there are several reasons against a campaign, the gravest is shown. A campaign passes only if
// it has shown something and there is no reason against it.
func TestConclusionOfACampaign(t *testing.T) {
	const fail, pass, open = invariant.OutcomeFail, invariant.OutcomePass, invariant.OutcomeInconclusive
	reasons := []struct {
		name   string
		add    func(*Campaign)
		want   invariant.Outcome
		saying string
	}{ // the gravest first
		{"a core invariant is violated", func(c *Campaign) {
			c.Findings = append(c.Findings, CampaignFinding{Invariant: "NoLoop", Grade: invariant.GradeCore},
				CampaignFinding{Invariant: "NoLoop", Grade: invariant.GradeCore})
		}, fail, "NoLoop violated, in 2 different ways (2 NEW)"},
		{"two traces of one schedule", func(c *Campaign) { c.Checks.Differed = 1 }, open, "gave two traces"},
		{"trouble", func(c *Campaign) { c.Troubles = []Trouble{{Sentence: "it broke"}} }, open, "it broke"},
		{"nothing was run", func(c *Campaign) { c.Schedules = 0 }, open, "nothing was run"},
		{"nothing was passed on", func(c *Campaign) { c.PassedOn = 0 }, open, "no request was passed on"},
		{"too few states", func(c *Campaign) { c.Reached = c.Reached[1:] }, open, "only 7 of the interesting states were reached"},
		{"ended early", func(c *Campaign) { c.Complete = false }, open, "ended after"},
	}
	whole := func() *Campaign {
		c := &Campaign{Method: MethodRandom, Complete: true, Schedules: 20, PassedOn: 1}
		for n := range FewestStates {
			c.Reached = append(c.Reached, Reach{State: fmt.Sprint(n), Schedules: 1})
		}
		return c
	}
	expect := func(name string, c *Campaign, want invariant.Outcome, saying string) {
		t.Helper()
		if c.Conclude(); c.Verdict.Outcome != want || !strings.Contains(c.Verdict.Sentence, saying) {
			t.Errorf("%s: %s: %s; want %s, and %q", name, c.Verdict.Outcome, c.Verdict.Sentence, want, saying)
		}
	}
	expect("none", whole(), pass, "no violation in 20 schedules")
	for i, graver := range reasons {
		c := whole()
		graver.add(c)
		expect(graver.name, c, graver.want, graver.saying)
		for _, lesser := range reasons[i+1:] {
			c := whole()
			lesser.add(c)
			graver.add(c)
			expect(graver.name+", and "+lesser.name, c, graver.want, graver.saying)
		}
	}
	mixed := whole()
	mixed.Findings = []CampaignFinding{{Invariant: "NoLoop", Grade: invariant.GradeCore}, {Invariant: "NoLoop", Grade: invariant.GradeCore}}
	mixed.Findings[1].Finding = 2
	expect("one of two kinds is known", mixed, fail, "in 2 different ways (finding 2; 1 NEW)")
	mixed.Findings[0].Finding = 1
	expect("both are known", mixed, invariant.OutcomeKnown, "(findings 1 and 2). Nothing is new")
	mixed.Complete = false
	expect("both are known, ended early", mixed, open, "ended after")
	beyond := whole()
	beyond.Findings = []CampaignFinding{{Invariant: "Available", Grade: invariant.GradeExtended}}
	expect("an invariant beyond the KEP is violated", beyond, pass, "no violation")
	beyond.Strict = true
	expect("the same, strict", beyond, fail, "Available violated")
	exhaustive := whole()
	exhaustive.Method, exhaustive.Reached = MethodAll, nil
	expect("all schedules, whatever they reach", exhaustive, pass, "no violation")
}
