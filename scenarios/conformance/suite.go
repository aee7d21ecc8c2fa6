package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

const (
	// spare is by how much Ginkgo's own limit of a spec exceeds that of its run: it is a net, and must not be what ends a run.
	spare = kindGoodbye + 30*time.Second
	// grace is what Ginkgo gives an interrupted spec to end its run, which takes its goodbye at the most.
	grace = kindGoodbye + 15*time.Second
	// prepared bounds what happens before the first spec: binaries that are not cached yet may have to be built, at 5 minutes each.
	prepared = time.Hour
)

// Declare declares the suite to Ginkgo: the preparation, a spec for each scenario, one for each control run, and the report at the end. Call it
// once, before RunSpecs. The options must be valid. When ctx ends, what is under way is ended, no other run is begun, and the report is
// written. What the suite came to is in the returned value after RunSpecs.
//
// Ginkgo may spread the specs over processes, and leave some out. So none is run ahead: [Options.Parallel] is for [Run] alone.
//
// The suite fails if a spec does, and also if none does and the report says that nothing was shown.
func Declare(ctx context.Context, o Options) *Outcome {
	o.Parallel = 1
	end := declare(ctx, o)
	// Where every spec is skipped, where there is no control run, and where specs were left out, none has failed.
	ginkgo.ReportAfterSuite(comesTo, func(_ ginkgo.SpecContext, r ginkgo.Report) {
		if r.SuiteSucceeded && !r.SuiteConfig.DryRun && end.Report.Kind != "" {
			gomega.Expect(end.Report.Result).To(gomega.Equal(reports.ResultPassed), "%s", end.Report.Sentence)
		}
	})
	return end
}

// declare is [Declare] for specs that are all run in this process, if the decorators say that they are Ordered.
func declare(ctx context.Context, o Options, decorators ...any) *Outcome {
	runs := runs{suite: ctx}
	var end Outcome
	ginkgo.SynchronizedBeforeSuite(func(spec ginkgo.SpecContext) []byte {
		both, cancel := context.WithCancel(spec)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		err := o.prepare(both)
		endIn(ctx, "the preparation")
		gomega.Expect(err).To(gomega.Succeed())
		ready, err := json.Marshal(preparation{o.Program, o.Out})
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return ready
	}, func(ready []byte) {
		var p preparation
		gomega.Expect(json.Unmarshal(ready, &p)).To(gomega.Succeed())
		o.Out, runs.out = p.Out, p.Out
		runs.queue = NewQueue(ctx, Program{Path: p.Program}, o.Parallel)
		if o.Parallel > 1 {
			runs.begin(o.ahead())
		}
	}, ginkgo.NodeTimeout(prepared))

	controls, unproven := o.controls()
	// Ginkgo shuffles what is not in one container. Specs in that of the suite have an order: that of the catalogue, which is easier to follow, if
	// it is marked as Ordered, and an alphabetical one otherwise.
	ginkgo.Describe(container, append(decorators, func() {
		for _, s := range o.chosen() {
			ginkgo.Describe(string(s.Family), func() {
				ginkgo.It(s.Name, ginkgo.Label(labels(s)...), ginkgo.SpecTimeout(o.runOf(s).limit+spare), ginkgo.GracePeriod(grace),
					func(spec ginkgo.SpecContext) { o.scenario(spec, &runs, s) })
			})
		}
		for _, c := range controls {
			ginkgo.Describe(controlContainer, ginkgo.Label(labelControl), func() {
				ginkgo.It(c.Name+" on "+c.Control.Subject, ginkgo.Label(labels(c.Scenario)...), ginkgo.SpecTimeout(c.limit+spare), ginkgo.GracePeriod(grace),
					func(spec ginkgo.SpecContext) { c.prove(spec, &runs) })
			})
		}
	})...)
	ginkgo.ReportAfterSuite("conformance report", func(_ ginkgo.SpecContext, r ginkgo.Report) {
		runs.close() // Ginkgo may have ended the suite, and knows only of the run that a spec was waiting for
		end.Report = o.Report(r, unproven)
		var junit []byte
		if junit, end.Err = junitOf(r, end.Report); end.Err == nil {
			end.Err = reports.SaveConformance(o.Out, end.Report, junit)
		}
		gomega.Expect(end.Err).To(gomega.Succeed())
	}, ginkgo.NodeTimeout(grace+time.Minute))
	return &end
}

// comesTo is the name under which a suite fails in which no spec did.
const comesTo = "what the suite comes to"

// Outcome is what a suite came to.
type Outcome struct {
	// Report is the report; its zero value as long as the suite is not over.
	Report reports.ConformanceReport
	// Err says why it could not be saved.
	Err error
}

// What specs are called begins with these: "conformance upgrades quiet", "conformance negative control quiet on none". labelControl marks the latter.
const (
	container        = "conformance"
	controlContainer = "negative control"
	labelControl     = "control"
)

// scenario is the spec of one scenario.
func (o *Options) scenario(ctx context.Context, runs *runs, s scenario.Scenario) {
	result := o.ofScenario(s)
	if !s.Limits.Allows(o.Backend) {
		unsaid(result, reports.ResultSkipped, fmt.Sprintf("it does not run on %s: %s", o.Backend, s.Limits.Reason))
		leave(outcome{Scenario: result})
		ginkgo.Skip(result.Core.Reason)
	}
	run := o.runOf(s)
	finished := runs.carryOut(ctx, run, s.Name)
	result.Directory = run.dir
	judgeScenario(result, finished)
	leave(outcome{Scenario: result, Interrupted: finished.Problem == interrupted})
	runs.endIn(finished, run, s.Name)
	if result.Core.Result == reports.ResultSkipped {
		ginkgo.Skip(result.Core.Reason)
	}
	gomega.Expect(result.Core).To(pass("core"), "%s", result.Happens)
	if o.Strict && result.Extended.Result != reports.ResultSkipped { // of which there may be nothing to see
		gomega.Expect(result.Extended).To(pass("extended"), "%s", result.Happens)
	}
}

// prove is the spec of one control run.
func (c *control) prove(ctx context.Context, runs *runs) {
	what := "the negative control " + c.Name
	run := c.run()
	finished := runs.carryOut(ctx, run, what)
	result := c.result()
	result.Directory = run.dir
	judgeControl(result, finished)
	leave(outcome{Control: result, Interrupted: finished.Problem == interrupted})
	runs.endIn(finished, run, what)
	if result.Result == reports.ResultSkipped {
		ginkgo.Skip(result.Reason)
	}
	gomega.Expect(result.Result).To(gomega.Equal(reports.ResultPassed), "%s", result.Reason)
}

// leave leaves what a spec came to for the report.
func leave(o outcome) {
	ginkgo.AddReportEntry(entry, asJSON(o), ginkgo.ReportEntryVisibilityNever)
}

// asJSON encodes here and now: what a pointer points to may be shown long after.
func asJSON(o outcome) string {
	encoded, err := json.Marshal(o)
	if err != nil { // strings, numbers and structs of them
		panic(err)
	}
	return string(encoded)
}
