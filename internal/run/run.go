// Package run carries out one run. A [Spec] says which run is wanted. A [Plan] is a Spec that has
// been checked as far as possible beforehand. [Plan.Run] makes from it a cluster, a history, a
// verdict and a directory ([Dir]).
//
// The servers run on a backend. Each backend has its own file: local (with its half inside the
// sandbox), kind, sim, existing.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// Result is the result of a run.
type Result struct {
	// Dir is the directory with the history of the run. It is empty if the run did not get that
	// far.
	Dir Dir
	// Standing is the verdict. If there is none, the error says why.
	Standing invariant.Standing
}

// errInterrupted is the error of a run that a signal stopped before it had a history.
var errInterrupted = errors.New("interrupted before there was a verdict")

// Run carries out the run. When ctx ends, the servers end, and what was recorded until then is
// judged. With Spec.Keep, the cluster stays up
// after the verdict until ctx ends.
func (s Spec) Run(ctx context.Context, c Console) (Result, error) {
	plan, err := s.Plan()
	if err != nil {
		return Result{}, err
	}
	return plan.Run(ctx, c)
}

// Run carries out the plan, like [Spec.Run].
func (p *Plan) Run(ctx context.Context, c Console) (result Result, err error) {
	// First find out whether the machine and the servers can do the run, because these checks are
	// cheap and building takes minutes.
	if err := p.backend.prepare(ctx, p); err != nil {
		return Result{}, err
	}
	if err := p.askOwn(ctx, c.Progress); err != nil {
		return Result{}, err
	}
	dir, err := NewDir(p.Spec.Out, p.Scenario.Name+"-"+p.Spec.Subject)
	if err != nil {
		return Result{}, err
	}
	defer dir.Tidy()

	// Make the cluster and the history.
	j := &job{Plan: p, Run: p.describe(), Dir: dir, Console: c, status: c.Status()}
	var unjudged error
	err = p.backend.carryOut(ctx, j, func(cut error) {
		// Judge what was recorded.
		var report reports.RunReport
		report, unjudged = dir.judge(j.recorded, Judging{p.Spec.Strict, p.Spec.Known}, c, cut)
		result.Standing = report.Standing()
	})
	if _, missing := os.Stat(dir.History()); missing == nil {
		result.Dir = dir
	}
	return result, errors.Join(err, unjudged)
}

// job is a plan that is being carried out.
type job struct {
	*Plan
	Console
	Run    history.Run
	Dir    Dir
	status func(format string, args ...any)
	// recorded is the history if the process has it in memory, sorted like the file. Otherwise it is
	// nil, and judging reads the file.
	recorded *history.History
	// want makes the sandboxed half record something about the servers, and then end.
	want *wanted
}

// begin records the environment of the run and writes the manifest.
func (j *job) begin(got programs, environment ...string) error {
	if own := j.Spec.own().Words(); len(own) > 0 {
		environment = append(environment, "flags of the user's own for every kube-apiserver: "+strings.Join(own, " "))
	}
	j.Run.Environment, j.Run.Binaries = environment, got.identities
	return j.Dir.writeManifest(j.manifest(got))
}

func (j *job) manifest(got programs) manifest {
	return manifest{
		Run: j.Run, Plan: j.Schedule, Programs: got.of(j.Spec), Keep: j.Spec.Keep, NoLoad: j.Spec.NoLoad, At: j.Spec.At, Want: j.want,
	}
}

// record makes a cluster, carries out the plan on it, and writes the history. When record returns,
// the cluster is still up. If the cluster could not be made, record returns nil. record adds the
// settings of the manifest to the options.
func record[C cluster.Reachable](ctx context.Context, d Dir, m manifest, o engine.Options, create func(*history.Recorder) (C, error)) (made C, err error) {
	file, err := d.createHistory()
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := d.logClients()
	if err != nil {
		return made, err
	}
	defer end()
	m.Run.StartedAt = time.Now()
	recorder := history.NewRecorder(file, m.Run, nil)
	created, err := create(recorder)
	if err != nil {
		return made, errors.Join(err, recorder.Close(err))
	}
	o.Seed, o.QPS, o.Subject, o.NoLoad = m.Run.Seed, m.Run.QPS, m.Run.Subject, m.NoLoad
	if m.At != nil {
		m.Plan.Steps, o.LeaveOn = m.Plan.Steps[:*m.At], true
	}
	return created, engine.Run(ctx, m.Plan, created, recorder, o)
}

// cutUnless returns nil if the run is complete. Otherwise its error says that the run was not
// carried out completely.
func (d Dir) cutUnless(complete bool) error {
	if complete {
		return nil
	}
	return fmt.Errorf("the run was not carried out to its end; logs are in %s", d.logs())
}
