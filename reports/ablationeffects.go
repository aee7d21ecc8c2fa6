package reports

import (
	"fmt"
	"slices"
)

// telling is the smallest share of a policy's violations that a change must remove to be named.
const telling = 0.05

// rises reports whether a change adds enough violations to be named: at least a fifth more, and in
// at least 1 of 100 schedules.
func (a *Ablation) rises(before, after uint64) bool {
	return after > before && 5*(after-before) >= before && 100*(after-before) >= a.Schedules
}

// removes reports whether a change of From removes enough violations to be named.
func removes(before, after uint64) bool { return share(before, after) >= telling }

// needed reports whether a change of To adds violations.
func needed(before, after uint64) bool { return after > before }

// Findings says in sentences which single change removes violations, adds violations or is needed.
// It says that no single change removes them only if all changes were tried.
func (a *Ablation) Findings() []string {
	var removing, adding, missing []string
	for i, column := range a.Columns {
		from, to := a.FromCounts[i], a.ToCounts[i]
		removed := false
		for _, r := range a.Rows {
			with, without := r.With[i], r.Without[i]
			change, undone := r.Switch+"="+shortValue(r.ToValue), r.Switch+"="+shortValue(r.FromValue)
			switch {
			case removes(from, with):
				removed = true
				removing = append(removing, fmt.Sprintf("%s: %s alone, in %s, removes %s of the violations (%d of %d schedules are left).",
					column, change, a.Spec, percent(share(from, with)), with, from))
			case a.rises(from, with):
				adding = append(adding, fmt.Sprintf("%s: %s alone, in %s, adds to the violations (%d of %d schedules, rather than %d).",
					column, change, a.Spec, with, a.Schedules, from))
			}
			if needed(to, without) {
				missing = append(missing, fmt.Sprintf("%s: %s with %s, rather than %s, violates it in %d of %d schedules, instead of %d.",
					column, a.To, undone, shortValue(r.ToValue), without, a.Schedules, to))
			}
		}
		if !removed && from > 0 && a.Complete {
			removing = append(removing, fmt.Sprintf("%s: no single change of %s removes as much as %s of the violations in %d schedules.",
				column, a.Spec, percent(telling), from))
		}
	}
	return slices.Concat(removing, adding, missing)
}

// percent writes a share in percent. It rounds to "all" only if the share is 1.
func percent(part float64) string {
	if part >= 1 {
		return "all"
	}
	if rounded := fmt.Sprintf("%.0f %%", 100*part); rounded != "100 %" {
		return rounded
	}
	return "more than 99 %"
}

// share is the share of a policy's violations that a change removes. It is below 0 if the change
// adds violations.
func share(before, after uint64) float64 {
	if before == 0 {
		return 0
	}
	return 1 - float64(after)/float64(before)
}
