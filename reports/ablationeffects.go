package reports

import "fmt"

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

// ablationEffect is what a change does to the number of schedules that violate the invariant of one
// column.
type ablationEffect struct {
	AblationRow
	Before, After uint64
}

// Change is the change of From. Undone is the change of To.
func (e ablationEffect) Change() string { return e.Switch + "=" + shortValue(e.ToValue) }
func (e ablationEffect) Undone() string { return e.Switch + "=" + shortValue(e.FromValue) }

// Removed is the removed share in percent.
func (e ablationEffect) Removed() string { return percent(share(e.Before, e.After)) }

// ablationEffects are all changes that are named for one column.
type ablationEffects struct {
	AblationColumn
	// From and To are how many schedules violate the invariant under the unchanged policies.
	From, To uint64
	// Removing and Adding are changes of From, which remove violations or add to them. Needed are
	// changes of To that add violations.
	Removing, Adding, Needed []ablationEffect
}

// effects are the named changes of every column.
func (a *Ablation) effects() (all []ablationEffects) {
	for i, column := range a.Columns {
		e := ablationEffects{AblationColumn: column, From: a.FromCounts[i], To: a.ToCounts[i]}
		for _, r := range a.Rows {
			with, without := ablationEffect{r, e.From, r.With[i]}, ablationEffect{r, e.To, r.Without[i]}
			switch {
			case removes(with.Before, with.After):
				e.Removing = append(e.Removing, with)
			case a.rises(with.Before, with.After):
				e.Adding = append(e.Adding, with)
			}
			if needed(without.Before, without.After) {
				e.Needed = append(e.Needed, without)
			}
		}
		all = append(all, e)
	}
	return all
}

// Findings says in sentences which single change removes violations, adds violations or is needed.
// It says that no single change removes them only if all changes were tried.
func (a *Ablation) Findings() []string {
	var removing, adding, missing []string
	for _, c := range a.effects() {
		for _, e := range c.Removing {
			removing = append(removing, fmt.Sprintf("%s: %s alone, in %s, removes %s of the violations (%d of %d schedules are left).",
				c, e.Change(), a.Spec, e.Removed(), e.After, e.Before))
		}
		if len(c.Removing) == 0 && c.From > 0 && a.Complete {
			removing = append(removing, fmt.Sprintf("%s: no single change of %s removes as much as %s of the violations in %d schedules.",
				c, a.Spec, percent(telling), c.From))
		}
		for _, e := range c.Adding {
			adding = append(adding, fmt.Sprintf("%s: %s alone, in %s, adds to the violations (%d of %d schedules, rather than %d).",
				c, e.Change(), a.Spec, e.After, a.Schedules, e.Before))
		}
		for _, e := range c.Needed {
			missing = append(missing, fmt.Sprintf("%s: %s with %s, rather than %s, violates it in %d of %d schedules, instead of %d.",
				c, a.To, e.Undone(), shortValue(e.ToValue), e.After, a.Schedules, e.Before))
		}
	}
	return append(append(removing, adding...), missing...)
}

// conclusion says in a sentence how many kinds of violations a single change removes.
func (a *Ablation) conclusion() string {
	var violated, whole, partly int
	for _, c := range a.effects() {
		if c.From == 0 {
			continue
		}
		violated++
		most := c.From
		for _, e := range c.Removing {
			most = min(most, e.After)
		}
		switch {
		case most == 0:
			whole++
		case most < c.From:
			partly++
		}
	}
	switch {
	case violated == 0 && len(a.Rows) == 0:
		return "Nothing was compared."
	case violated == 0:
		return fmt.Sprintf("%s violates nothing in these schedules.", a.Spec)
	}
	told := fmt.Sprintf("%s has %s of violations. One switch alone removes all violations of %d of them", a.Spec, counted(violated, "kind"),
		whole)
	if partly > 0 {
		told += fmt.Sprintf(", and some of %d", partly)
	}
	told += "."
	if rest := violated - whole - partly; rest > 0 && a.Complete {
		told += fmt.Sprintf(" No single switch removes as much as %s of the violations of %d.", percent(telling), rest)
	}
	return told
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
