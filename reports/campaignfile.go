package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// WriteCampaign writes a campaign into dir as [CampaignJSON] and [CampaignHTML], with the repro
// file of each finding. It makes dir if dir does not exist. It is as atomic as [WriteAll].
func WriteCampaign(dir string, c *Campaign) error {
	var repros []file
	for _, f := range c.Findings {
		if len(f.Repro) == 0 {
			continue
		}
		var escaped, body bytes.Buffer
		json.HTMLEscape(&escaped, f.Repro)
		if err := json.Indent(&body, escaped.Bytes(), "", "  "); err != nil {
			return fmt.Errorf("render %s: %w", f.File, err)
		}
		body.WriteByte('\n')
		repros = append(repros, file{filepath.Join(dir, f.File), body.Bytes()})
	}
	return save(dir, c, []rendering[*Campaign]{{CampaignJSON, writeIndented[*Campaign]}, {CampaignHTML, WriteCampaignHTML}}, repros...)
}

var campaigns = readable[*Campaign]{"campaign", CampaignKind, "search again to write a new campaign", false, (*Campaign).check}

// ReadCampaign reads a campaign. It refuses any other document, unknown fields and contradictions.
// The error names the file and what is wrong with it.
func ReadCampaign(path string) (*Campaign, error) { return campaigns.read(path) }

// check refuses a campaign that contradicts itself, and names of files elsewhere.
func (c *Campaign) check() error {
	sum := uint64(0)
	for _, p := range c.Parts {
		sum += p.Schedules
	}
	if len(c.Parts) == 0 || sum != c.Schedules {
		return fmt.Errorf("its %d parts have %d schedules, and it says %d: the file was altered", len(c.Parts), sum, c.Schedules)
	}
	known := invariant.All()
	if len(c.Invariants) != len(known) {
		return fmt.Errorf("it knows %d invariants; this skewproof knows %d", len(c.Invariants), len(known))
	}
	for i, inv := range known {
		if c.Invariants[i].Name != inv.Name {
			return fmt.Errorf("its invariant %d is %q; this skewproof's is %q", i+1, c.Invariants[i].Name, inv.Name)
		}
		if n := len(c.Invariants[i].Requests); n != len(RequestKinds) {
			return fmt.Errorf("it knows %d kinds of requests; this skewproof knows %d", n, len(RequestKinds))
		}
	}
	for _, f := range c.Findings {
		if !slices.ContainsFunc(known, func(inv invariant.Invariant) bool { return inv.Name == f.Invariant }) {
			return fmt.Errorf("a finding is of the invariant %q, which this skewproof does not know", f.Invariant)
		}
		if strings.ContainsAny(f.File, `/\`) || f.File == ".." || f.File == "" && len(f.Repro) > 0 {
			return fmt.Errorf("a finding's file %q is not a plain name", f.File)
		}
		if err := f.Removal.Check(); err != nil {
			return err
		}
		if r := f.Real; r != nil && (strings.ContainsAny(r.Run, `/\\`) || r.Run == ".." || r.Confirmed > r.Repeated) {
			return fmt.Errorf("what it says of a finding on real servers is wrong: run %q, seen in %d of %d", r.Run, r.Confirmed, r.Repeated)
		}
	}
	if (c.Real != nil) != (c.Method == MethodReal) {
		return fmt.Errorf("its method is %q, which does not fit what it says of real servers", c.Method)
	}
	if s := c.Standing(); c.Verdict.Outcome != s.Outcome() {
		return fmt.Errorf("its verdict is %q, and what it found makes %q: the file was altered", c.Verdict.Outcome, s.Outcome())
	}
	return nil
}

// covered says how many schedules of its scope a campaign ran: "all 23,173", or "7 of the 14".
func covered(c *Campaign) string {
	all := grouped(int(c.Scope.Schedules))
	if c.Schedules == c.Scope.Schedules {
		return "all " + all
	}
	return grouped(int(c.Schedules)) + " of the " + all
}

// WriteCampaignSummary writes a campaign for a terminal: the verdict, what was searched, a few
// lines for each finding, and the files with more details.
func WriteCampaignSummary(w io.Writer, c *Campaign, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts}
	t.verdict(c.Verdict.Outcome, c.Verdict.Sentence+".")
	if c.Real != nil {
		t.writeReal(c)
	} else {
		fmt.Fprintf(t, "%s: %s schedules in %.0f s (%.0f a second), %d of the %d interesting states that are possible reached\n",
			plain(c.Spec.String()), grouped(int(c.Schedules)), c.ElapsedSeconds, c.SchedulesPerSecond, c.States(), c.PossibleStates())
	}
	if c.Scope != nil {
		fmt.Fprintf(t, "%s schedules of up to %d events of %d kinds\n", covered(c), c.Scope.Events, len(c.Scope.Alphabet))
	}
	var never, idle []string
	for _, r := range c.Reached {
		if r.Schedules == 0 && r.Impossible == "" {
			never = append(never, r.State)
		}
	}
	for _, inv := range c.Invariants {
		if inv.Exercised == 0 {
			idle = append(idle, inv.Name)
		}
	}
	if len(never) > 0 {
		fmt.Fprintf(t, "never reached: %s\n", plain(strings.Join(never, ", ")))
	}
	if len(idle) > 0 {
		fmt.Fprintf(t, "not exercised: %s\n", plain(strings.Join(idle, ", ")))
	}
	if c.Real == nil {
		fmt.Fprintf(t, "%s schedules run twice, %s with another trace\n", grouped(int(c.Checks.Repeated)), grouped(int(c.Checks.Differed)))
	}
	for _, x := range c.Troubles {
		fmt.Fprintf(t, "%s could not be carried out, the first with seed %d: %s\n", counted(int(x.Schedules), "schedule"), x.Seed,
			plain(x.Sentence))
	}
	for n, f := range c.Findings {
		if c.NewRemoval(n) {
			fmt.Fprintf(t, "\n%s\n", plain(f.Removal.String()))
		}
		t.finding(f)
	}
	if c.Real != nil {
		writeCoverage(t, c.Real)
	}
	return t.end(w, CampaignHTML, CampaignJSON)
}

func (t *terminal) finding(f CampaignFinding) {
	grade := ""
	if f.Grade != invariant.GradeCore {
		grade = " (beyond the KEP)"
	}
	fmt.Fprintf(t, "\n%s %s%s\n  in %s, first with seed %d\n", t.sign(invariant.OutcomeFail), plain(f.ViolationKind.String()), grade,
		counted(int(f.Schedules), "schedule"), f.Seed)
	for _, line := range f.Story {
		fmt.Fprintf(t, "    %s\n", plain(line))
	}
	fmt.Fprintf(t, "  %s\n", plain(f.Sentence))
	if f.Real != nil {
		fmt.Fprintf(t, "  %s", f.Confirmation())
		if f.Real.Model != "" {
			fmt.Fprintf(t, " Simulator: %s.", plain(f.Real.Model))
		}
		fmt.Fprintln(t)
	}
	if f.File != "" && t.Dir != "" {
		fmt.Fprintf(t, "  skewproof replay %s\n", filepath.Join(t.Dir, plain(f.File)))
	}
}
