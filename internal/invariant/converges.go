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
	Sentence: "Within a bounded time after the last disturbance every response is right again, and stays right: no false 404, " +
		"no unnecessary 5xx, and the same discovery from every apiserver.",
	Source: "KEP-4020, Service Level Objectives: what is known of peers is stale for seconds in the normal case and for single-digit " +
		"minutes in the worst, and discovery incomplete for brief periods at most, when leases expire or the network is partitioned. " +
		"The bound (20 s unless a run says otherwise) is ours: four times what the normal case allows, counted from the end of the last " +
		"disturbance. A later 404 or 5xx breaks the Goals; for discovery alone the worst case may allow it",
	judge: judgeConverges,
}

// sample is an observation that is ruled right or wrong without any tolerance.
type sample struct {
	*observation
	wrong string // what is wrong, or ""
	// usual is the document of most responses, if the response is wrong because it differs.
	usual string
}

func judgeConverges(f *Facts) *tally {
	t := newTimedTally(f)
	last := f.lastDisturbance()
	bound := later(last, f.bounds.Convergence)
	samples := f.samples(last)
	lastWrong := history.Time(-1)
	wrong := 0
	for _, s := range samples {
		if s.op.Start < last {
			continue
		}
		t.verdict.Checked++
		if s.wrong == "" {
			continue
		}
		wrong++
		lastWrong = max(lastWrong, s.op.End)
		if s.op.End > bound {
			b := t.breach(s.observation, *s.situation, s.wrong, s.wrong)
			if s.usual != "" {
				b.Extension = f.extensionBetween(s.observation, s.usual)
			}
			t.violation(b, func() Evidence {
				return f.show(s.observation, *s.situation, fmt.Sprintf("%s: %s, %s after the last disturbance, when %s are allowed",
					answer(s.op), s.wrong, clock(s.op.End-last), clock(f.bounds.Convergence)))
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
		t.fact("wrong responses until then", wrong)
	}
	t.factRecoveries(samples)
	t.doubtConvergence(samples, last)
	return t
}

// samples rules on every operation, in time order. It compares discovery between servers only after
// the last disturbance, because only then must all servers settle on one document.
func (f *Facts) samples(last history.Time) []sample {
	// While a killed server stays away, some servers may still list its resources and others not. So
	// may they while a server comes or goes that the run did not ask.
	final := func(o *observation) bool {
		_, ok := f.merged(o.op)
		return ok && o.op.Start >= last && !f.serverLost(o) && len(f.run.Unnamed) == 0
	}
	out := make([]sample, 0, len(f.observations))
	seen := map[string][]sighting{}
	for _, o := range f.observations {
		if wrong, judged := f.sample(o); judged {
			out = append(out, sample{observation: o, wrong: wrong})
		}
		if o.ready && final(o) {
			seen[o.op.Path] = append(seen[o.op.Path], sighting{o, nil})
		}
	}
	usual := map[string]representation{}
	for path, all := range seen {
		// If there are responses after the bound, they show which document the servers settled on.
		bound := later(last, f.bounds.Convergence)
		if i := slices.IndexFunc(all, func(s sighting) bool { return s.op.Start >= bound }); i >= 0 {
			all = all[i:]
		}
		usual[path] = mostFrequent(all)
	}
	for i, s := range out {
		if s.wrong == "" && final(s.observation) && !f.alike(s.op.Path, representationOf(s.op), usual[s.op.Path]) {
			out[i].wrong, out[i].usual = s.op.Path+" differs from most responses", usual[s.op.Path].hash
		}
	}
	return out
}

// sample rules on one operation by everything that must hold for it. It counts as wrong what other
// invariants tolerate, because it measures how long a wrong answer lasts.
func (f *Facts) sample(o *observation) (wrong string, judged bool) {
	if !o.ready || o.localDocument() {
		return "", false
	}
	notFound := f.ruleNotFound(o)
	unserved, unservedCause := f.ruleUnserved(o)
	available, availableCause := f.ruleAvailable(o)
	complete, _, _ := f.ruleComplete(o, f.truthFor(o))
	bad := func(r ruling) bool { return r == rulingWrong || r == rulingTolerated }
	switch {
	case bad(notFound):
		return "false 404", true
	case bad(unserved):
		return cmp.Or(unservedCause, "503 rather than 404"), true
	case bad(available):
		return cmp.Or(availableCause, "failed") + " though it could be served", true
	case bad(complete):
		return o.op.Path + " is not what is served", true
	}
	return "", slices.ContainsFunc([]ruling{notFound, unserved, available, complete}, func(r ruling) bool {
		return r == rulingRight || r == rulingEarly
	})
}

// truthFor is what all servers served during a request for merged discovery.
func (f *Facts) truthFor(o *observation) truth {
	if _, ok := f.merged(o.op); !ok && !f.unreadable(o.op) {
		return truth{}
	}
	return f.truth(window{o.window.from, later(o.window.to, 1)})
}

// maxRecoveries limits how many measured steps are shown. In a run with hundreds of steps, the
// slowest ones are enough.
const maxRecoveries = 12

// factRecoveries adds, for each disturbing step, how long responses were wrong after it.
func (t *tally) factRecoveries(samples []sample) {
	type recovery struct {
		step  history.Step
		index int
		wrong history.Time // end of the last wrong response, after the end of the step
		right history.Time // end of the last right one
	}
	steps := slices.DeleteFunc(slices.Clone(t.facts.steps), func(s history.Step) bool { return !s.Disturbs })
	var all []recovery
	for i, step := range steps {
		next := forever
		if i+1 < len(steps) {
			next = steps[i+1].Start
		}
		r := recovery{step: step, index: i, wrong: -1, right: -1}
		from, _ := slices.BinarySearchFunc(samples, step.End, func(s sample, at history.Time) int { return cmp.Compare(s.op.Start, at) })
		for _, s := range samples[from:] {
			if s.op.Start >= next {
				break
			}
			if s.op.End >= next {
				continue
			}
			if s.wrong != "" {
				r.wrong = max(r.wrong, s.op.End-step.End)
			} else {
				r.right = max(r.right, s.op.End-step.End)
			}
		}
		if r.wrong >= 0 || r.right >= 0 {
			all = append(all, r)
		}
	}
	if len(all) > maxRecoveries {
		slices.SortStableFunc(all, func(a, b recovery) int { return cmp.Compare(b.wrong, a.wrong) })
		all = all[:maxRecoveries]
		slices.SortFunc(all, func(a, b recovery) int { return cmp.Compare(a.index, b.index) })
	}
	for _, r := range all {
		value := "right from the first response on"
		switch {
		case r.wrong < 0:
		case r.right > r.wrong:
			value = "last wrong response " + clock(r.wrong) + " after it"
		case r.index == len(steps)-1:
			value = "still wrong " + clock(r.wrong) + " after it, when the run ended"
		default:
			value = "still wrong " + clock(r.wrong) + " after it, when the next step began"
		}
		t.fact(fmt.Sprintf("after step %d, %s", r.step.Index, r.step.Sentence), value)
	}
}

// doubtConvergence says why the cluster may not have converged although the run shows no violation.
func (t *tally) doubtConvergence(samples []sample, last history.Time) {
	f := t.facts
	if t.verdict.Checked == 0 {
		t.doubt("nothing was judged after the last disturbance, which ended at %s", clock(last))
		return
	}
	if f.finish < later(last, f.bounds.Convergence) {
		t.doubt("the run ended %s after the last disturbance: too early, as %s are allowed", clock(f.finish-last), clock(f.bounds.Convergence))
	}
	if len(f.run.Unnamed) > 0 {
		t.doubt("the servers' discovery was not compared")
	}
	seen := map[string]bool{}
	late := max(last, later(last, f.bounds.Convergence-f.bounds.Staleness))
	for _, s := range samples {
		if s.wrong == "" && s.op.Start >= last && s.op.End >= late {
			seen[s.op.Server] = true
		}
	}
	for _, s := range f.servers {
		if s.line.at(f.traffic).phase == phaseReady && !seen[s.name] {
			t.doubt("%s gave no right response after %s, when it should have converged", s.name, clock(late))
		}
	}
	if still := stillWrong(samples, last); len(still) > 0 {
		t.doubt("wrong when last asked, and not asked again: %s", abridge(still, len(still)))
	}
}

// stillWrong names the resources for which the last answer of a server was wrong. A resource that
// is rarely asked for may stay wrong because no request comes after the bound.
func stillWrong(samples []sample, last history.Time) (names []string) {
	wrong := map[string]bool{}
	for _, s := range samples {
		if s.op.Start >= last {
			wrong[cmp.Or(s.resource.name(), s.op.Path)+" on "+s.op.Server] = s.wrong != ""
		}
	}
	for what, still := range wrong {
		if still {
			names = append(names, what)
		}
	}
	slices.Sort(names)
	return names
}
