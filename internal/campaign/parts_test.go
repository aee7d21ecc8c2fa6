package campaign

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skewproof/skewproof/reports"
)

// A campaign in two parts chooses, counts and finds what one of both lengths does.
func TestACampaignInPartsIsOne(t *testing.T) {
	whole := carriedOut(t, options(t, 5), &simulated{})
	o := options(t, 2)
	first := carriedOut(t, o, &simulated{})
	o.Earlier, o.Seeds = first, 3
	both := carriedOut(t, o, &simulated{})
	if !both.Complete || len(both.Parts) != 2 || both.Parts[0] != first.Parts[0] || both.Parts[1].Schedules != 3 {
		t.Errorf("complete %t, parts %+v", both.Complete, both.Parts)
	}
	if len(both.Real.Sessions) != 2 {
		t.Errorf("clusters %+v", both.Real.Sessions)
	}
	differ := cmp.Diff(whole, both, cmpopts.IgnoreFields(reports.Campaign{}, "Parts", "ElapsedSeconds", "SchedulesPerSecond"),
		cmpopts.IgnoreFields(reports.RealCampaign{}, "Sessions"))
	if differ != "" {
		t.Errorf("a campaign in parts is not that in one part (-one +parts):\n%s", differ)
	}
}

// subresourcesNotRouted is a finding that most schedules show. Without it in the catalogue, its
// violations are NEW, and they are few kinds.
const subresourcesNotRouted = 2

// What was NEW in an earlier part is neither kept again nor repeated, and keeps its repro file. Its
// file names are not used again.
func TestAnEarlierPartKeepsWhatIsNew(t *testing.T) {
	o := options(t, 2)
	o.Findings, o.Repeats, o.ShrinkRuns = o.Findings.Without(subresourcesNotRouted), 0, 0
	first := carriedOut(t, o, &simulated{})
	if len(first.Findings) == 0 {
		t.Fatal("nothing is NEW: this test would prove nothing")
	}
	again := options(t, 2) // in a directory of its own, without the runs that the first part kept
	again.Findings, again.Earlier, again.Repeats, again.ShrinkRuns = o.Findings, first, 0, 0
	both := carriedOut(t, again, &simulated{})
	files := map[string]bool{}
	for _, f := range both.Findings {
		if f.File != "" && files[f.File] {
			t.Errorf("two findings have the repro file %s", f.File)
		}
		files[f.File] = true
	}
	for _, f := range first.Findings {
		kept := false
		for _, g := range both.Findings {
			if g.ViolationKind == f.ViolationKind {
				kept = g.File == f.File && cmp.Equal(g.Real, f.Real) && g.Seed == f.Seed && g.Schedules >= f.Schedules
			}
		}
		if !kept {
			t.Errorf("%s is not kept", f.ViolationKind)
		}
	}
}

// A part that ended before it had repeated a NEW violation leaves this to the next part. What the
// earlier part did repeat counts.
func TestTheNextPartRepeatsWhatIsNew(t *testing.T) {
	o := options(t, 2)
	o.Findings, o.Repeats, o.ShrinkRuns = o.Findings.Without(subresourcesNotRouted), 1, 0
	first := carriedOut(t, o, &simulated{})
	seeds := map[uint64]bool{}
	for _, f := range first.Findings {
		if f.Finding == 0 {
			seeds[f.Seed] = true
		}
	}
	if len(seeds) == 0 {
		t.Fatal("nothing is NEW: this test would prove nothing")
	}
	again := options(t, 1)
	again.Findings, again.ShrinkRuns, again.Repeats = o.Findings, 0, 3
	again.Earlier, again.UntilNew = first, true // what is left from before ends nothing
	on := &simulated{}
	both := carriedOut(t, again, on)
	for _, f := range both.Findings {
		if f.Finding == 0 && (f.Real.Repeated != 3 || f.Real.Confirmed != 3 || f.File == "" || f.Real.Run == "") {
			t.Errorf("%s: %+v in %q, want 3 repetitions", f.ViolationKind, f.Real, f.File)
		}
	}
	// The third schedule may have NEW kinds, too.
	third := 1
	if slices.ContainsFunc(both.Findings, func(f reports.CampaignFinding) bool { return f.Finding == 0 && !seeds[f.Seed] }) {
		third += again.Repeats
	}
	if want := third + 2*len(seeds); both.Schedules != 3 || on.schedules != want {
		t.Errorf("%d schedules; %d runs in the second part, want %d", both.Schedules, on.schedules, want)
	}
	if differ := cmp.Diff(first.Real.Gaps, both.Real.Gaps); differ != "" {
		t.Errorf("the gaps of the model changed (-before +after):\n%s", differ)
	}
}

// A campaign that is killed can be continued: what was found is written whenever a cluster has
// ended.
func TestACampaignIsWrittenAfterEachCluster(t *testing.T) {
	o := options(t, 4)
	on := &simulated{breaks: map[int]error{3: errors.New("a crashed")}}
	opened := 0
	c, err := New(o, func(ctx context.Context, out string) (Cluster, error) {
		if opened++; opened != 2 {
			return on.Open(ctx, out)
		}
		killed, err := reports.ReadCampaign(filepath.Join(o.Out, reports.CampaignJSON))
		if err != nil || killed.Complete || killed.Schedules != 2 || CheckEarlier(killed, o.Version) != nil {
			t.Errorf("when the second cluster starts, the document is %+v (%v)", killed, err)
		}
		return on.Open(ctx, out)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil || opened != 2 {
		t.Errorf("%d clusters, %v", opened, err)
	}
}

// Only a campaign on real servers whose next seed is known can be continued.
func TestWhatCannotBeContinued(t *testing.T) {
	real := func(next uint64) *reports.Campaign {
		return &reports.Campaign{FirstSeed: 7, Schedules: 1, Real: &reports.RealCampaign{NextSeed: next}}
	}
	for name, c := range map[string]struct {
		earlier *reports.Campaign
		want    bool
	}{
		"in the simulator":   {&reports.Campaign{FirstSeed: 7, Schedules: 1}, false},
		"no next seed":       {real(0), false},
		"at the first seed":  {real(7), false},
		"after it":           {real(8), true},
		"by another version": {&reports.Campaign{SkewproofVersion: "v1", FirstSeed: 7, Schedules: 1, Real: &reports.RealCampaign{NextSeed: 8}}, false},
	} {
		if err := CheckEarlier(c.earlier, ""); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := total(mean(90*time.Second, 4), 4); got != 90*time.Second {
		t.Errorf("a total is %s after the mean, want 90s", got)
	}
}

// With UntilNew a campaign ends with the schedule that shows the first NEW violation.
func TestUntilNew(t *testing.T) {
	o := options(t, 4)
	o.Findings, o.UntilNew, o.Repeats = o.Findings.Without(subresourcesNotRouted), true, 0
	c := carriedOut(t, o, &simulated{})
	first := uint64(0)
	for _, f := range c.Findings {
		if f.Finding == 0 {
			first = f.Seed
		}
	}
	if first == 0 || c.Schedules >= 4 || !c.Complete {
		t.Errorf("%d schedules, complete %t; want to end with the first of 4 that shows something NEW", c.Schedules, c.Complete)
	}
	o = options(t, 2)
	o.UntilNew = true
	if c := carriedOut(t, o, &simulated{}); c.Schedules != 2 || !c.Complete {
		t.Errorf("%d schedules, complete %t, though nothing is NEW", c.Schedules, c.Complete)
	}
}
