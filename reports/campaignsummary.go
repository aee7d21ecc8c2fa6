package reports

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim/search"
)

// WriteCampaignSummary writes what someone at a terminal wants to know of a search: the verdict, what was searched, a few lines for each finding,
// where to read on.
func WriteCampaignSummary(w io.Writer, c *search.Campaign, opts SummaryOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s.\n\n", paint(opts, c.Verdict.Outcome, strings.ToUpper(string(c.Verdict.Outcome))+":"), plain(c.Verdict.Sentence))
	fmt.Fprintf(&b, "%s: %s schedules in %.0f s (%.0f a second), about %s different traces, %d of the %d interesting states that are possible reached\n",
		c.Spec, grouped(int(c.Schedules)), c.ElapsedSeconds, c.SchedulesPerSecond, grouped(int(c.Traces)), c.States(), c.PossibleStates())
	if c.Scope != nil {
		fmt.Fprintf(&b, "%s schedules of up to %d events of %d kinds\n", covered(c), c.Scope.Events, len(c.Scope.Alphabet))
	}
	if never := unreached(c); len(never) > 0 {
		fmt.Fprintf(&b, "never reached: %s\n", strings.Join(never, ", "))
	}
	if idle := unexercised(c); len(idle) > 0 {
		fmt.Fprintf(&b, "not exercised: %s\n", strings.Join(idle, ", "))
	}
	fmt.Fprintf(&b, "%s schedules run twice, %s with another trace\n", grouped(int(c.Checks.Repeated)), grouped(int(c.Checks.Differed)))
	for _, x := range c.Troubles {
		fmt.Fprintf(&b, "%s could not be carried out, the first with seed %d: %s\n", counted(int(x.Schedules), "schedule"), x.Seed, plain(x.Sentence))
	}
	for _, f := range c.Findings {
		b.WriteString("\n")
		writeFinding(&b, f, opts)
	}
	if opts.Dir != "" {
		fmt.Fprintf(&b, "\n%s\n%s\n", filepath.Join(opts.Dir, CampaignHTML), filepath.Join(opts.Dir, CampaignJSON))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// covered says how many of the schedules of its scope a campaign ran, as "all 23,173" or, where it was ended early or is one shard, "7 of the 14".
func covered(c *search.Campaign) string {
	all := grouped(int(c.Scope.Schedules))
	if c.Schedules == c.Scope.Schedules {
		return "all " + all
	}
	return grouped(int(c.Schedules)) + " of the " + all
}

func unreached(c *search.Campaign) []string {
	var never []string
	for _, r := range c.Reached {
		if r.Schedules == 0 && r.Impossible == "" {
			never = append(never, r.State)
		}
	}
	return never
}

// unexercised names the invariants of which a search says nothing.
func unexercised(c *search.Campaign) []string {
	var idle []string
	for _, inv := range c.Invariants {
		if inv.Exercised == 0 {
			idle = append(idle, inv.Name)
		}
	}
	return idle
}

func writeFinding(b *strings.Builder, f search.Finding, opts SummaryOptions) {
	grade := ""
	if f.Grade != invariant.GradeCore {
		grade = " (beyond the KEP)"
	}
	fmt.Fprintf(b, "%s %s%s\n  in %s, first with seed %d\n", paint(opts, invariant.OutcomeFail, sign(invariant.OutcomeFail)), plain(f.Signature.String()), grade,
		counted(int(f.Schedules), "schedule"), f.Seed)
	for _, line := range f.Story {
		fmt.Fprintf(b, "    %s\n", plain(line))
	}
	fmt.Fprintf(b, "  %s\n", plain(f.Sentence))
	if f.File != "" && opts.Dir != "" {
		fmt.Fprintf(b, "  skewproof replay %s\n", filepath.Join(opts.Dir, f.File))
	}
}
