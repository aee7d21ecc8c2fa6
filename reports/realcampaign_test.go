package reports

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/history"
)

// realCampaign returns a campaign on real servers, with a finding that was confirmed and one that
// was not.
func realCampaign() *Campaign {
	c := smallCampaign()
	c.Method, c.Reached, c.Parts, c.Troubles, c.Checks = MethodReal, nil, c.Parts[:1], nil, SelfChecks{}
	c.Schedules, c.Parts[0].Schedules, c.Wanted = 12, 12, 12
	c.Real = &RealCampaign{
		Subject: "builtin", Versions: []string{"v1.36.3", "v1.37.1"}, QPS: 240,
		Sessions:   []RealSession{{10, "it was not used any longer"}, {2, "the campaign ended"}},
		Operations: 50000, PassedOn: 9000, ScheduleSeconds: 50, ResetSeconds: 10, AloneSeconds: 75,
		Axes: CoverageAxes{[]string{"none", "cut"}, []string{"none", "restart"}, []string{"skewed operations", "skewed lists by label"}},
		Coverage: []CoverageCell{{"none", "none", "skewed operations", 10}, {"none", "none", "skewed lists by label", 5},
			{"cut", "restart", "skewed operations", 7}},
		Gaps: []string{"NEW: Available: whole resource <b>"},
	}
	c.Growth = []GrowthPoint{{Schedules: 1, Kinds: 1, Cells: 2}, {Schedules: 12, Kinds: 2, Cells: 3}}
	c.Findings[0].Real = &RealFinding{Run: "schedule-77", Confirmed: 2, Repeated: 3, Model: "the model knows it"}
	c.Findings[1].Real = &RealFinding{Run: "schedule-5", Repeated: 3, After: []uint64{1, 4}, Model: "the model does not know it"}
	return c
}

func TestACampaignOnRealServersIsShown(t *testing.T) {
	c := realCampaign()
	var text, page bytes.Buffer
	if err := WriteCampaignSummary(&text, c, SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := WriteCampaignHTML(&page, c); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, filepath.Join("testdata", "campaign-real.html"), page.String())
	for _, says := range []string{
		"Seen again in 2 of 3 runs of the schedule, each on a new cluster.",
		"Not seen again in 3 runs of the schedule, each on a new cluster. It came after: the schedules of the seeds 1, 4.",
		"the model knows it", "it was not used any longer",
	} {
		for name, shown := range map[string]string{"text": text.String(), "page": page.String()} {
			if !strings.Contains(shown, says) {
				t.Errorf("the %s does not say %q:\n%s", name, says, shown)
			}
		}
	}
	for _, says := range []string{"by itself a schedule takes 1.5 times as long", "3 of 8 cells", "the model does not know: NEW: Available", "cut                  restart                   1          7"} {
		if !strings.Contains(text.String(), says) {
			t.Errorf("the text does not say %q:\n%s", says, text.String())
		}
	}
	for _, not := range []string{"traces", "schedules run twice"} {
		if strings.Contains(text.String(), not) {
			t.Errorf("the text speaks of %q, which only the simulator has", not)
		}
	}
	const command = "skewproof explore --backend local --subject builtin --versions v1.36.3,v1.37.1 --servers 3 --qps 240 --first 1 --seeds 12"
	if got := c.Command(); got != command {
		t.Errorf("the command is %q, want %q", got, command)
	}
}

func TestConfirmation(t *testing.T) {
	for want, f := range map[string]*RealFinding{
		"": nil, "It was not repeated on a new cluster.": {},
		"Not seen again in 3 runs of the schedule, each on a new cluster. It came first on its cluster.": {Repeated: 3},
	} {
		if got := (CampaignFinding{Real: f}).Confirmation(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestACampaignSaysWhetherItHasControllers(t *testing.T) {
	for _, controllers := range []bool{true, false} {
		c := &Campaign{Schedules: 4, Real: &RealCampaign{Subject: "builtin", Controllers: controllers, ControllersWorked: 3, Sessions: []RealSession{{Schedules: 4}}}}
		if got := strings.HasSuffix(c.Command(), " --controllers"); got != controllers {
			t.Errorf("controllers %v: %s", controllers, c.Command())
		}
		want := "1 cluster, with at most 4 schedules each"
		if controllers {
			want += "; controllers were at work in 3 schedules"
		}
		if got := c.Real.SessionSummary(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A step that was not carried out says so.
func TestStepsThatWereRefusedSayWhy(t *testing.T) {
	steps := newSteps(&history.History{Steps: []history.Step{
		{Sentence: "delete namespace x", Refused: "no server answers"}, {Index: 1, Start: 1, Sentence: "stop the controllers"},
	}}, time.Second)
	if got := []string{steps[0].Sentence, steps[1].Sentence}; !slices.Equal(got, []string{"delete namespace x (not carried out: no server answers)", "stop the controllers"}) {
		t.Errorf("%q", got)
	}
}
