package conformance

import (
	"context"
	"path/filepath"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/skewproof/skewproof/internal/scenario"
)

// run is what a spec has carried out.
type run struct {
	dir   string // below the output directory
	limit time.Duration
	words []string
}

// runOf is the run of a scenario's spec.
func (o *Options) runOf(s scenario.Scenario) run {
	return run{filepath.Join("scenarios", s.Name), Patience(s.Plan(o.parameters(s))), o.words(s)}
}

// run is that of the spec of a control run.
func (c *control) run() run { return run{filepath.Join("control", c.Name), c.limit, c.words} }

// ahead are the runs of all specs that there will be, in their order.
func (o *Options) ahead() []run {
	chooses, err := types.ParseLabelFilter(o.Labels)
	if err != nil { // Validate says so
		return nil
	}
	var all []run
	for _, s := range o.chosen() {
		if s.Limits.Allows(o.Backend) {
			all = append(all, o.runOf(s))
		}
	}
	controls, _ := o.controls()
	for _, c := range controls {
		if chooses(append(labels(c.Scenario), labelControl)) { // "!control" does not: nobody would wait for these
			all = append(all, c.run())
		}
	}
	return all
}

// runs are how specs come to their runs. Specs are carried out one after the other. For several runs at a time, all are queued before the first spec, and
// each spec waits for its own; in between, runs are begun of specs that have not had their turn yet.
type runs struct {
	suite context.Context
	out   string
	queue *Queue
	ahead map[string]*Queued // by directory; until their spec asks for them
}

// begin queues runs before it is their specs' turn.
func (r *runs) begin(ahead []run) {
	r.ahead = map[string]*Queued{}
	for _, one := range ahead {
		r.ahead[one.dir] = r.add(one)
	}
}

func (r *runs) add(one run) *Queued {
	return r.queue.Add(one.limit, filepath.Join(r.out, one.dir), one.words...)
}

// carryOut is what the run of a spec came to: one that is queued already, or else one that begins now. If it has not begun, the suite is to end, and is ended.
func (r *runs) carryOut(spec context.Context, one run, what string) Finished {
	queued, ok := r.ahead[one.dir]
	if !ok {
		queued = r.add(one)
	}
	delete(r.ahead, one.dir)
	finished, begun := queued.Wait(spec)
	if !begun {
		endIn(r.suite, what+", before it began")
		ginkgo.Fail(finished.Problem)
	}
	return finished
}

// endIn ends the suite, if it is to end and that is what ended the run. Specs whose runs had begun have their turn before: they may be over and have a verdict.
func (r *runs) endIn(f Finished, one run, what string) {
	if f.Problem != interrupted {
		return
	}
	underWay := what + " (what its run had said is in " + filepath.Join(r.out, one.dir) + ".log)"
	if r.suite.Err() != nil && r.left() {
		ginkgo.Fail("interrupted in " + underWay)
	}
	endIn(r.suite, underWay)
}

// left says whether runs had begun whose specs have not had their turn. No more are begun then.
func (r *runs) left() bool {
	r.close()
	for _, queued := range r.ahead {
		if _, begun := queued.Wait(r.suite); begun {
			return true
		}
	}
	return false
}

// close ends all runs.
func (r *runs) close() {
	if r.queue != nil { // otherwise the preparation failed
		r.queue.Close()
	}
}

// endIn ends the suite, if it is to end, and says in one line what was under way.
func endIn(suite context.Context, underWay string) {
	if suite.Err() != nil {
		ginkgo.AbortSuite("interrupted in " + underWay + "; the rest of the suite is not run")
	}
}
