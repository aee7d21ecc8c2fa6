package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim"
)

// tally is what schedules came to, of one worker or of all.
type tally struct {
	schedules, judged uint64
	reached           []uint64 // by state
	exercised         []uint64 // by invariant, in the order of the catalogue: histories in which it had something to judge
	violated          []uint64 // and those that violated it
	asked             map[askedKey]uint64
	traces, shapes    Distinct
	found             map[Signature]*Finding
	troubles          map[string]*Trouble
	checks            Checks
}

func newTally() tally {
	return tally{
		reached: make([]uint64, len(sim.States())), exercised: make([]uint64, len(invariant.All())), violated: make([]uint64, len(invariant.All())),
		asked: map[askedKey]uint64{}, found: map[Signature]*Finding{}, troubles: map[string]*Trouble{},
	}
}

// askedKey is an invariant and what was peculiar about the requests that violated it.
type askedKey struct {
	invariant string
	asked     Peculiarity
}

// mostKinds bounds the signatures, and the troubles, that are told apart: a defect that has a different text each time must not fill the memory.
const mostKinds = 1000

func (t *tally) count(r *sim.Result) {
	t.schedules++
	t.traces.Add(r.Hash)
	t.shapes.Add(r.Shape)
	for state := range t.reached {
		if r.Reached.Has(sim.State(state)) {
			t.reached[state]++
		}
	}
}

// judge counts which invariants a schedule put to the test, and which it violated.
func (t *tally) judge(verdicts []invariant.Verdict) {
	t.judged++
	for i := range t.violated { // a run that is about none has no verdicts but those of the catalogue
		if verdicts[i].Checked > 0 || verdicts[i].Violations > 0 {
			t.exercised[i]++
		}
		if verdicts[i].Outcome == invariant.OutcomeFail {
			t.violated[i]++
		}
	}
}

func (t *tally) find(seed uint64, violations []Violation) {
	for i, v := range violations {
		key := askedKey{v.Invariant, v.Asked}
		if !slices.ContainsFunc(violations[:i], func(o Violation) bool { return askedKey{o.Invariant, o.Asked} == key }) {
			t.asked[key]++
		}
		f := t.found[v.Signature]
		if f == nil {
			if len(t.found) >= mostKinds {
				t.trouble("there are more kinds of violations than are told apart", seed)
				continue
			}
			f = &Finding{Signature: v.Signature, Seed: seed, Sentence: v.Sentence}
			t.found[v.Signature] = f
		}
		f.Schedules++
		if seed < f.Seed {
			f.Seed, f.Sentence = seed, v.Sentence
		}
	}
}

func (t *tally) trouble(text string, seed uint64) {
	if t.troubles[text] == nil && len(t.troubles) >= mostKinds {
		text = "others"
	}
	t.addTrouble(Trouble{Sentence: text, Schedules: 1, Seed: seed})
}

func (c *Checks) repeated(seed uint64, differs bool) {
	c.Repeated++
	if differs {
		c.Differed++
		c.FirstDiffered = earlier(c.FirstDiffered, seed)
	}
}

func (c *Checks) doubted(seed uint64, wrong bool) {
	c.Doubted++
	if wrong {
		c.Wrong++
		c.FirstWrong = earlier(c.FirstWrong, seed)
	}
}

// earlier is the smaller of two seeds, of which 0 is none.
func earlier(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (c *Checks) add(o Checks) {
	c.Repeated, c.Differed, c.FirstDiffered = c.Repeated+o.Repeated, c.Differed+o.Differed, earlier(c.FirstDiffered, o.FirstDiffered)
	c.Doubted, c.Wrong, c.FirstWrong = c.Doubted+o.Doubted, c.Wrong+o.Wrong, earlier(c.FirstWrong, o.FirstWrong)
}

// add counts what another has counted.
func (t *tally) add(o *tally) {
	t.schedules, t.judged = t.schedules+o.schedules, t.judged+o.judged
	for i, n := range o.reached {
		t.reached[i] += n
	}
	for i, n := range o.exercised {
		t.exercised[i] += n
	}
	for i, n := range o.violated {
		t.violated[i] += n
	}
	for key, n := range o.asked {
		t.asked[key] += n
	}
	t.traces.Merge(&o.traces)
	t.shapes.Merge(&o.shapes)
	t.checks.add(o.checks)
	for signature, f := range o.found { // in any order: the least seed is taken
		t.addFinding(signature, f)
	}
	for _, x := range o.troubles {
		t.addTrouble(*x)
	}
}

func (t *tally) addTrouble(x Trouble) {
	mine := t.troubles[x.Sentence]
	if mine == nil {
		t.troubles[x.Sentence] = &x
		return
	}
	mine.Schedules, mine.Seed = mine.Schedules+x.Schedules, min(mine.Seed, x.Seed)
}

func (t *tally) addFinding(signature Signature, f *Finding) {
	mine := t.found[signature]
	if mine == nil {
		copied := *f
		t.found[signature] = &copied
		return
	}
	if f.Seed < mine.Seed {
		mine.Seed, mine.Sentence = f.Seed, f.Sentence
	}
	mine.Schedules += f.Schedules
}

// invariants lists all, with the schedules that violated each.
func (t *tally) invariants() []InvariantCount {
	var all []InvariantCount
	for i, inv := range invariant.All() {
		count := InvariantCount{Name: inv.Name, Grade: inv.Grade, Sentence: inv.Sentence, Exercised: t.exercised[i], Violated: t.violated[i]}
		for _, p := range peculiarities {
			count.Requests = append(count.Requests, RequestCount{p, t.asked[askedKey{inv.Name, p}]})
		}
		all = append(all, count)
	}
	return all
}

// findings lists the violations, what the KEP demands first.
func (t *tally) findings() []Finding {
	all := make([]Finding, 0, len(t.found))
	for _, f := range t.found {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b Finding) int { return a.compare(b.Signature) })
	return all
}

func (t *tally) troubleList() []Trouble {
	all := make([]Trouble, 0, len(t.troubles))
	for _, text := range slices.Sorted(maps.Keys(t.troubles)) {
		all = append(all, *t.troubles[text])
	}
	slices.SortStableFunc(all, func(a, b Trouble) int { return cmp.Compare(a.Seed, b.Seed) })
	return all
}

// total is what all workers have counted so far.
func (s *search) total() *tally {
	t := newTally()
	for _, w := range s.workers {
		w.note(func(mine *tally) { t.add(mine) })
	}
	return &t
}

// Progress is how far a search is.
type Progress struct {
	Schedules uint64        // that were run
	Wanted    uint64        // that are to be run; 0 if it goes by time
	Elapsed   time.Duration // since it began
	Traces    uint64        // different ones, about
	States    int           // of the interesting ones that were reached
	OfStates  int           // that are possible
	Core      int           // signatures of violations of core invariants
	Extended  int           // and of extended ones
	// Shrunk of ToShrink findings have a smallest schedule. While ToShrink is not 0, the rest of this is.
	Shrunk, ToShrink int
}

// String is a line for people.
func (p Progress) String() string {
	if p.ToShrink > 0 {
		return fmt.Sprintf("looking for the smallest schedules: %d of %d", p.Shrunk, p.ToShrink)
	}
	count := strconv.FormatUint(p.Schedules, 10)
	if p.Wanted > 0 {
		count += " of " + strconv.FormatUint(p.Wanted, 10)
	}
	return fmt.Sprintf("%s schedules, %.0f/s, %d distinct traces, %d of %d states, violations of %d kinds (and %d beyond the KEP)",
		count, float64(p.Schedules)/max(p.Elapsed.Seconds(), 0.001), p.Traces, p.States, p.OfStates, p.Core, p.Extended)
}

func (s *search) progress() Progress {
	t := s.total()
	p := Progress{Schedules: t.schedules, Elapsed: time.Since(s.began), Traces: min(t.traces.Count(), t.schedules), OfStates: len(t.reached) - len(s.spec.impossible())}
	if s.options.Seeds > 0 {
		p.Wanted = s.share()
	}
	for _, n := range t.reached {
		if n > 0 {
			p.States++
		}
	}
	for signature := range t.found {
		if signature.Grade == invariant.GradeCore {
			p.Core++
		} else {
			p.Extended++
		}
	}
	return p
}
