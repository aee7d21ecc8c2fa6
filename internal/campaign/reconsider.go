package campaign

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim/search"
)

// reconsider judges again what was NEW in earlier parts. Since then a finding may have been entered
// that explains it, or an invariant may have been corrected. It returns a copy of the document in
// which these violations are not NEW any more. The copy lists them, so that none just disappears.
func (c *Campaign) reconsider(e *reports.Campaign) *reports.Campaign {
	now, real := *e, *e.Real
	now.Real, now.Findings = &real, slices.Clone(e.Findings)
	real.Gaps, real.Withdrawn = slices.Clone(real.Gaps), slices.Clone(real.Withdrawn)
	type counted struct {
		finding int
		seed    uint64
	}
	already := map[counted]bool{} // several kinds of one schedule may have one explanation
	judged := map[string][]search.Violation{}
	for _, f := range e.Findings {
		if f.Finding != 0 {
			continue
		}
		var why string
		if known, ok := c.explainsNow(f); ok {
			why = fmt.Sprintf("finding %d explains it", known.Number)
			if at := (counted{known.Number, f.Seed}); !already[at] {
				already[at] = true
				add(&now, known, f)
			}
		} else if why = c.judgedNow(f, judged); why == "" {
			continue
		}
		same := func(o reports.CampaignFinding) bool { return o.ViolationKind == f.ViolationKind }
		now.Findings = slices.DeleteFunc(now.Findings, same)
		real.Gaps = slices.DeleteFunc(real.Gaps, func(gap string) bool { return gap == f.ViolationKind.String() })
		real.Withdrawn = append(real.Withdrawn, fmt.Sprintf("seed %d, %s: %s", f.Seed, f.ViolationKind, why))
	}
	return &now
}

// explainsNow returns the finding that explains a violation that was NEW.
func (c *Campaign) explainsNow(f reports.CampaignFinding) (findings.Finding, bool) {
	repro, err := reproOf(f)
	if err != nil {
		return findings.Finding{}, false
	}
	return c.Findings.Explain(repro.Signature)
}

// reproOf reads the repro file that the document of a campaign has of a violation.
func reproOf(f reports.CampaignFinding) (r search.Repro, err error) {
	if err := json.Unmarshal(f.Repro, &r); err != nil {
		return r, fmt.Errorf("read the repro file of seed %d from %s: %w", f.Seed, reports.CampaignJSON, err)
	}
	return r, nil
}

// judgedNow judges the run of a violation again. It returns "" if the violation is still NEW, or if
// the run is gone; else it says how the run is judged now. judged are the violations of runs that
// were judged already, because one run may show many kinds.
func (c *Campaign) judgedNow(f reports.CampaignFinding, judged map[string][]search.Violation) string {
	if f.Real == nil || f.Real.Run == "" {
		return ""
	}
	now, ok := judged[f.Real.Run]
	if !ok {
		h, err := history.ReadFile(run.Dir(filepath.Join(c.Out, f.Real.Run)).History())
		if err != nil {
			return "" // the run is gone
		}
		now = search.Violations(c.Findings, invariant.Judge(h))
		judged[f.Real.Run] = now
	}
	var known []string // explain violations of the same invariant
	for _, v := range now {
		switch {
		case v.ViolationKind == f.ViolationKind:
			return ""
		case v.Finding != 0 && v.Signature.Invariant == f.ViolationKind.Signature.Invariant:
			known = append(known, fmt.Sprintf("finding %d", v.Finding))
		}
	}
	if len(known) > 0 {
		return fmt.Sprintf("known violations of %s remain in its run: %s", f.ViolationKind.Signature.Invariant, strings.Join(known, ", "))
	}
	return "this version of skewproof does not call it a violation"
}

// add counts the schedules of a violation that was NEW for the finding that explains it.
func add(to *reports.Campaign, known findings.Finding, f reports.CampaignFinding) {
	i := slices.IndexFunc(to.Findings, func(o reports.CampaignFinding) bool { return o.Finding == known.Number })
	if i >= 0 {
		to.Findings[i].Schedules += f.Schedules
		return
	}
	f.ViolationKind = reports.ViolationKind{Finding: known.Number, Title: known.Title}
	f.File, f.Repro, f.Story, f.Disturbances, f.Shrunk, f.Real = "", nil, nil, 0, false, nil
	to.Findings = append(to.Findings, f)
}
