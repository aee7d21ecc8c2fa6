package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

// firstPart is a campaign of two schedules that does not know one finding, so it calls its
// violations NEW.
func firstPart(t *testing.T) (Options, *reports.Campaign) {
	t.Helper()
	o := options(t, 2)
	o.Findings, o.Repeats, o.ShrinkRuns = o.Findings.Without(subresourcesNotRouted), 0, 0
	first := carriedOut(t, o, &simulated{})
	if len(newOnes(first)) == 0 {
		t.Fatal("nothing is NEW: this test would prove nothing")
	}
	return o, first
}

func newOnes(c *reports.Campaign) (all []reports.CampaignFinding) {
	for _, f := range c.Findings {
		if f.Finding == 0 {
			all = append(all, f)
		}
	}
	return all
}

// next returns a campaign that continues the first part.
func next(t *testing.T, o Options, first *reports.Campaign) *Campaign {
	t.Helper()
	o.Earlier = first
	c, err := New(o, (&simulated{}).Open)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A finding was entered since. What it explains counts for it, once for each schedule, and is
// listed.
func TestWhatAFindingExplainsSince(t *testing.T) {
	o, first := firstPart(t)
	schedules := map[uint64]bool{}
	for _, f := range newOnes(first) {
		schedules[f.Seed] = true
	}
	o.Findings = findings.For("builtin")
	c := next(t, o, first)
	i := slices.IndexFunc(c.Earlier.Findings, func(f reports.CampaignFinding) bool { return f.Finding == subresourcesNotRouted })
	if i < 0 || int(c.Earlier.Findings[i].Schedules) < len(schedules) || c.known[subresourcesNotRouted] != c.Earlier.Findings[i].Schedules {
		t.Fatalf("findings %+v, known %v; want finding %d in at least %d schedules", c.Earlier.Findings, c.known, subresourcesNotRouted, len(schedules))
	}
	both := c.report(true)
	if left := newOnes(both); len(left) > 0 || len(both.Real.Gaps) > 0 {
		t.Errorf("still NEW: %+v; gaps %q", left, both.Real.Gaps)
	}
	if len(both.Real.Withdrawn) != len(newOnes(first)) || !strings.HasSuffix(both.Real.Withdrawn[0], ": finding 2 explains it") {
		t.Errorf("listed are %q, want %d, each with its finding", both.Real.Withdrawn, len(newOnes(first)))
	}
	if len(newOnes(first)) == 0 {
		t.Error("the document of the earlier part was altered")
	}

	// The finding explains the violation only as this version of skewproof records it. Other findings
	// may explain other violations of the run.
	explains := regexp.MustCompile(` remain in its run: finding 2(, finding \d+)*$`)
	older := *first
	older.Findings = newOnes(first)
	for i := range older.Findings {
		older.Findings[i].Repro = nil
	}
	if got := next(t, o, &older).Earlier.Real.Withdrawn; len(got) != len(older.Findings) ||
		!strings.Contains(got[0], "known violations of ") || !explains.MatchString(got[1]) {
		t.Errorf("listed are %q", got)
	}
	if again := next(t, o, both).report(true); !slices.Equal(again.Real.Withdrawn, both.Real.Withdrawn) {
		t.Errorf("a third part lists %q, the second %q", again.Real.Withdrawn, both.Real.Withdrawn)
	}
}

// An invariant was corrected since. Its violations are no longer NEW only if their runs are there
// and do not show them.
func TestWhatAnInvariantAllowsSince(t *testing.T) {
	o, first := firstPart(t)
	out := o.Out
	for name, c := range map[string]struct {
		alter func(t *testing.T, dir run.Dir)
		still bool
	}{
		"the run still shows it": {func(*testing.T, run.Dir) {}, true},
		"the run is gone": {func(t *testing.T, dir run.Dir) {
			if err := os.RemoveAll(string(dir)); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the run cannot be read": {func(t *testing.T, dir run.Dir) {
			if err := os.WriteFile(dir.History(), []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, true},
		// To an invariant that allows what it did not allow before, the run is like one without the
		// requests that were wrong.
		"the run does not show it": {func(t *testing.T, dir run.Dir) {
			h, err := history.ReadFile(dir.History())
			if err != nil {
				t.Fatal(err)
			}
			h.Operations = nil
			if err := errors.Join(os.Remove(dir.History()), dir.SaveHistory(h)); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Out = t.TempDir()
			if err := os.CopyFS(o.Out, os.DirFS(out)); err != nil {
				t.Fatal(err)
			}
			runs := map[string]bool{}
			for _, f := range newOnes(first) {
				runs[f.Real.Run] = true
			}
			for dir := range runs {
				c.alter(t, run.Dir(filepath.Join(o.Out, dir)))
			}
			both := next(t, o, first).report(true)
			kept := 0
			for _, f := range newOnes(first) {
				if slices.ContainsFunc(both.Findings, func(g reports.CampaignFinding) bool { return g.ViolationKind == f.ViolationKind && g.Seed == f.Seed }) {
					kept++
				}
			}
			if c.still && (kept != len(newOnes(first)) || len(both.Real.Withdrawn) > 0) {
				t.Errorf("%d of %d are still NEW; listed are %q", kept, len(newOnes(first)), both.Real.Withdrawn)
			}
			if !c.still && (kept > 0 || len(both.Real.Withdrawn) != len(newOnes(first)) ||
				!strings.HasSuffix(both.Real.Withdrawn[0], "this version of skewproof does not call it a violation")) {
				t.Errorf("%d are still NEW; listed are %q", kept, both.Real.Withdrawn)
			}
		})
	}
}
