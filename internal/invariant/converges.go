package invariant

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var converges = Invariant{
	Name:    "Converges",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "Within a bounded time after the last disturbance everything is right again, and stays so: no false 404, " +
		"no needless 5xx, nobody's discovery differs.",
	Source: "KEP-4020, Service Level Objectives: what is known of peers is stale for seconds in the normal case and for single-digit minutes in the worst, and " +
		"discovery incomplete for brief periods at most, when leases expire or the network is partitioned. The bound (20 s unless a run says otherwise) is ours: four times what " +
		"the normal case is allowed, from when the last disturbance is over. A 404 or a 5xx that comes later is against the Goals; of discovery alone the worst case may allow it",
	judge: judgeConverges,
}

// glimpse is an observation as convergence sees it: right or wrong, without allowances.
type glimpse struct {
	*observation
	wrong string // what is wrong, or nothing
}

func judgeConverges(f *Facts) *tally {
	t := f.timely()
	last := f.lastDisturbance()
	bound := later(last, f.bounds.Convergence)
	glimpses := f.glimpses(last)
	lastWrong := history.Time(-1)
	wrong := 0
	for _, g := range glimpses {
		if g.op.Start < last {
			continue
		}
		t.verdict.Checked++
		if g.wrong == "" {
			continue
		}
		wrong++
		lastWrong = max(lastWrong, g.op.End)
		if g.op.End > bound {
			t.violation(signature{g.op.Server, "", g.wrong}, g.op.End, g.resource.name(), func() Evidence {
				return f.show(g.observation, g.situation, fmt.Sprintf("%s: %s, %s after the last disturbance, when %s are allowed",
					answer(g.op), g.wrong, clock(g.op.End-last), clock(f.bounds.Convergence)))
			})
		}
	}
	t.fact("last disturbance ended at", clock(last))
	switch {
	case t.verdict.Checked == 0:
	case wrong == 0:
		t.fact("converged after", "0s: nothing was wrong after the last disturbance")
	default:
		t.fact("converged after", clock(lastWrong-last))
		t.fact("wrong observations until then", wrong)
	}
	f.recoveries(t, glimpses)
	f.doubtConvergence(t, glimpses, last)
	return t
}

// glimpses rules on every operation, in time order. Whether discovery is the same on all servers is asked only after the
// last disturbance, when it should settle on one document.
func (f *Facts) glimpses(last history.Time) []glimpse {
	var out []glimpse
	var final []sighting
	for _, o := range f.observations {
		if wrong, judged := f.glimpse(o); judged {
			out = append(out, glimpse{o, wrong})
		}
		// As long as one that left without a word stays away, some may still count on it and others not.
		if _, ok := f.merged(o.op); ok && o.ready && o.op.Start >= last && !f.missing(o) {
			final = append(final, sighting{o, nil})
		}
	}
	usual := map[string]edition{}
	for _, path := range []string{pathCore, pathGroups} {
		of := slices.DeleteFunc(slices.Clone(final), func(s sighting) bool { return s.op.Path != path })
		// What it settled on is told by the answers that came when it had to be settled, if there are any.
		late := later(last, f.bounds.Convergence)
		if settled := slices.DeleteFunc(slices.Clone(of), func(s sighting) bool { return s.op.Start < late }); len(settled) > 0 {
			of = settled
		}
		if len(of) > 0 {
			usual[path] = mostUsual(of)
		}
	}
	for i, g := range out {
		if _, ok := f.merged(g.op); ok && g.op.Start >= last && g.wrong == "" && !f.missing(g.observation) && !f.alike(g.op.Path, editionOf(g.op), usual[g.op.Path]) {
			out[i].wrong = g.op.Path + " differs from what most answers were"
		}
	}
	return out
}

// glimpse rules on one operation by all that must hold of it. What is tolerated elsewhere is wrong here: the point is to
// measure how long it lasts.
func (f *Facts) glimpse(o *observation) (wrong string, judged bool) {
	if !o.ready || o.leftLocal() {
		return "", false
	}
	notFound := f.ruleNotFound(o)
	unservedRuling, unservedCause := f.ruleUnserved(o)
	availableRuling, availableCause := f.ruleAvailable(o)
	complete, _, _ := f.ruleComplete(o, f.truthFor(o))
	bad := func(r ruling) bool { return r == rulingWrong || r == rulingTolerated }
	switch {
	case bad(notFound):
		return "false 404", true
	case bad(unservedRuling):
		return cmp.Or(unservedCause, "503 rather than 404"), true
	case bad(availableRuling):
		return cmp.Or(availableCause, "failed") + " though it could be served", true
	case bad(complete):
		return o.op.Path + " is not what is served", true
	}
	return "", slices.ContainsFunc([]ruling{notFound, unservedRuling, availableRuling, complete}, func(r ruling) bool {
		return r == rulingRight || r == rulingEarly
	})
}

// truthFor is what all servers served while a discovery operation lasted.
func (f *Facts) truthFor(o *observation) truth {
	if _, ok := f.merged(o.op); !ok && !f.unreadable(o.op) {
		return truth{}
	}
	return f.truth(window{o.window.from, later(o.window.to, 1)})
}

// maxRecoveries bounds the measured steps: a run that creates and deletes a CRD a hundred times is told by its slowest.
const maxRecoveries = 12

// recoveries states for each disturbing step how long after it things were last seen wrong before the next one began.
func (f *Facts) recoveries(t *tally, glimpses []glimpse) {
	type recovery struct {
		step  history.Step
		index int
		took  history.Time
		until history.Time // of the last right observation, relative to the step's end
	}
	steps := slices.DeleteFunc(slices.Clone(f.steps), func(s history.Step) bool { return !s.Disturbs })
	var all []recovery
	for i, step := range steps {
		next := forever
		if i+1 < len(steps) {
			next = steps[i+1].Start
		}
		r := recovery{step: step, index: i, took: -1, until: -1}
		from, _ := slices.BinarySearchFunc(glimpses, step.End, func(g glimpse, at history.Time) int { return cmp.Compare(g.op.Start, at) })
		for _, g := range glimpses[from:] {
			if g.op.Start >= next {
				break
			}
			if g.op.End >= next {
				continue
			}
			if g.wrong != "" {
				r.took = max(r.took, g.op.End-step.End)
			} else {
				r.until = max(r.until, g.op.End-step.End)
			}
		}
		if r.took >= 0 || r.until >= 0 {
			all = append(all, r)
		}
	}
	if len(all) > maxRecoveries {
		slices.SortStableFunc(all, func(a, b recovery) int { return cmp.Compare(b.took, a.took) })
		all = all[:maxRecoveries]
		slices.SortFunc(all, func(a, b recovery) int { return cmp.Compare(a.index, b.index) })
	}
	for _, r := range all {
		value := "right from the first answer on"
		switch {
		case r.took >= 0 && r.until > r.took:
			value = "last wrong answer " + clock(r.took) + " after it"
		case r.took >= 0:
			value = "still wrong " + clock(r.took) + " after it, when the next began"
			if r.index == len(steps)-1 {
				value = "still wrong " + clock(r.took) + " after it, when the run ended"
			}
		}
		t.fact(fmt.Sprintf("after step %d, %s", r.step.Index, r.step.Sentence), value)
	}
}

// doubtConvergence gives the reasons why things may not have come right although nothing was seen wrong for too long.
func (f *Facts) doubtConvergence(t *tally, glimpses []glimpse, last history.Time) {
	if t.verdict.Checked == 0 {
		t.doubt("nothing was judged after the last disturbance, which ended at %s", clock(last))
		return
	}
	if f.finish < later(last, f.bounds.Convergence) {
		t.doubt("the run ended %s after the last disturbance: too early, as %s are allowed", clock(f.finish-last), clock(f.bounds.Convergence))
	}
	seen := map[string]bool{}
	late := max(last, later(last, f.bounds.Convergence-f.bounds.Staleness))
	for _, g := range glimpses {
		if g.wrong == "" && g.op.Start >= last && g.op.End >= late {
			seen[g.op.Server] = true
		}
	}
	for _, s := range f.servers {
		if s.line.at(f.traffic).phase == phaseReady && !seen[s.name] {
			t.doubt("%s was not seen right when it should have been, from %s on", s.name, clock(late))
		}
	}
	if n, example := unredeemed(glimpses, last); n > 0 {
		t.doubt("wrong when last asked, and not asked again: %s", abridge(example, n))
	}
}

// unredeemed counts what was wrong on some server when it was last asked there. If it is rarely asked for, it may well be
// wrong for good without being seen so after the bound.
func unredeemed(glimpses []glimpse, last history.Time) (n int, named []string) {
	wrong := map[string]bool{}
	for _, g := range glimpses {
		if g.op.Start >= last {
			what := cmp.Or(g.resource.name(), g.op.Path)
			wrong[what+" on "+g.op.Server] = g.wrong != ""
		}
	}
	for what, still := range wrong {
		if still {
			named = append(named, what)
		}
	}
	slices.Sort(named)
	return len(named), named
}
