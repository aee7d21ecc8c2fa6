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
		} else if why = c.judgedNow(f); why == "" {
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
	var repro search.Repro
	if json.Unmarshal(f.Repro, &repro) != nil {
		return findings.Finding{}, false
	}
	return c.Findings.Explain(repro.Signature)
}

// judgedNow judges the run of a violation again. It returns "" if the violation is still NEW, or if
// the run is gone; else it says how the run is judged now.
func (c *Campaign) judgedNow(f reports.CampaignFinding) string {
	if f.Real == nil || f.Real.Run == "" {
		return ""
	}
	h, err := history.ReadFile(run.Dir(filepath.Join(c.Out, f.Real.Run)).History())
	if err != nil {
		return "" // the run is gone
	}
	var known []string // explain violations of the same invariant
	for _, v := range search.Violations(c.Findings, invariant.Judge(h)) {
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
