package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

const (
	// spare is by how much Ginkgo's own limit of a spec exceeds that of its run: it is a net, and must not be what ends a run.
	spare = time.Minute
	// grace is what Ginkgo gives an interrupted spec to end its run, which takes goodbye at the most.
	grace = goodbye + 15*time.Second
	// prepared bounds what happens before the first spec: binaries that are not cached yet may have to be built, at 5 minutes each.
	prepared = time.Hour
)

// Declare declares the suite to Ginkgo: the preparation, a spec for each scenario, one for each control run, and the report at the end. Call it
// once, before RunSpecs. The options must be valid. When ctx ends, the run that is under way is ended, no other is begun, and the report is
// written. What the suite came to is in the returned value after RunSpecs.
func Declare(ctx context.Context, o Options) *Outcome {
	var program Program
	var end Outcome
	ginkgo.SynchronizedBeforeSuite(func(spec ginkgo.SpecContext) []byte {
		both, cancel := until(spec, ctx)
		defer cancel()
		err := o.prepare(both)
		endIn(both, "the preparation")
		gomega.Expect(err).To(gomega.Succeed())
		ready, err := json.Marshal(preparation{o.Program, o.Out})
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return ready
	}, func(ready []byte) {
		var p preparation
		gomega.Expect(json.Unmarshal(ready, &p)).To(gomega.Succeed())
		program.Path, o.Out = p.Program, p.Out
	}, ginkgo.NodeTimeout(prepared))

	runs, unproven := o.controls()
	// Ginkgo shuffles what is not in one container. In the order of the catalogue it is easier to follow.
	ginkgo.Describe(container, func() {
		for _, s := range o.chosen() {
			limit := Patience(s.Plan(o.parameters(s)))
			ginkgo.Describe(string(s.Family), func() {
				ginkgo.It(s.Name, ginkgo.Label(labels(s)...), ginkgo.SpecTimeout(limit+spare), ginkgo.GracePeriod(grace), func(spec ginkgo.SpecContext) {
					both, cancel := until(spec, ctx)
					defer cancel()
					o.scenario(both, program, s, limit)
				})
			})
		}
		for _, c := range runs {
			ginkgo.Describe(controlContainer, ginkgo.Label(labelControl), func() {
				ginkgo.It(c.Name+" on "+c.Control.Subject, ginkgo.Label(labels(c.Scenario)...), ginkgo.SpecTimeout(c.limit+spare), ginkgo.GracePeriod(grace),
					func(spec ginkgo.SpecContext) {
						both, cancel := until(spec, ctx)
						defer cancel()
						o.control(both, program, c)
					})
			})
		}
	})
	ginkgo.ReportAfterSuite("conformance report", func(_ ginkgo.SpecContext, r ginkgo.Report) {
		end.Report = o.Report(r, unproven)
		var junit []byte
		if junit, end.Err = junitOf(r); end.Err == nil {
			end.Err = reports.SaveConformance(o.Out, end.Report, junit)
		}
		gomega.Expect(end.Err).To(gomega.Succeed())
	}, ginkgo.NodeTimeout(time.Minute))
	return &end
}

// Outcome is what a suite came to.
type Outcome struct {
	// Report is the report; its zero value as long as the suite is not over.
	Report reports.ConformanceReport
	// Err says why it could not be saved.
	Err error
}

// errEnded is why the context of a spec has ended, if the whole suite is to end.
var errEnded = errors.New("the suite is to end")

// until is the context of a spec that also ends, by errEnded, with that of the suite.
func until(spec, suite context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(spec)
	stop := context.AfterFunc(suite, func() { cancel(errEnded) })
	return both, func() { stop(); cancel(nil) }
}

// endIn ends the suite, if it is to end, and says in one line what was under way.
func endIn(spec context.Context, underWay string) {
	if errors.Is(context.Cause(spec), errEnded) {
		ginkgo.AbortSuite("interrupted in " + underWay + "; the rest of the suite is not run")
	}
}

// What specs are called begins with these: "conformance upgrades quiet", "conformance negative control quiet on none". labelControl marks the latter.
const (
	container        = "conformance"
	controlContainer = "negative control"
	labelControl     = "control"
)

// scenario is the spec of one scenario.
func (o *Options) scenario(ctx context.Context, program Program, s scenarios.Scenario, limit time.Duration) {
	endIn(ctx, s.Name+", before it began")
	result := o.ofScenario(s)
	defer func() {
		ginkgo.AddReportEntry(entry, asJSON(outcome{Scenario: result}), ginkgo.ReportEntryVisibilityNever)
	}()
	if !s.Limits.Allows(o.Backend) {
		unsaid(result, reports.ResultSkipped, fmt.Sprintf("it does not run on %s: %s", o.Backend, s.Limits.Reason))
		ginkgo.Skip(result.Core.Reason)
	}
	result.Directory = filepath.Join("scenarios", s.Name)
	judgeScenario(result, program.Run(ctx, limit, filepath.Join(o.Out, result.Directory), o.words(s)...))
	endIn(ctx, fmt.Sprintf("%s (what its run had said is in %s.log)", s.Name, filepath.Join(o.Out, result.Directory)))
	if result.Core.Result == reports.ResultSkipped {
		ginkgo.Skip(result.Core.Reason)
	}
	gomega.Expect(result.Core).To(pass("core"), "%s", result.Happens)
	if o.Strict {
		gomega.Expect(result.Extended).To(gomega.Or(pass("extended"), gomega.HaveField("Result", reports.ResultSkipped)), "%s", result.Happens)
	}
}

// control is the spec of one control run.
func (o *Options) control(ctx context.Context, program Program, c control) {
	endIn(ctx, "the negative control "+c.Name+", before it began")
	result := c.result()
	result.Directory = filepath.Join("control", c.Name)
	defer func() {
		ginkgo.AddReportEntry(entry, asJSON(outcome{Control: result}), ginkgo.ReportEntryVisibilityNever)
	}()
	judgeControl(result, program.Run(ctx, c.limit, filepath.Join(o.Out, result.Directory), c.words...))
	endIn(ctx, fmt.Sprintf("the negative control %s (what its run had said is in %s.log)", c.Name, filepath.Join(o.Out, result.Directory)))
	gomega.Expect(result.Result).To(gomega.Equal(reports.ResultPassed), "%s", result.Reason)
}

// asJSON encodes here and now: what a pointer points to may be shown long after.
func asJSON(o outcome) string {
	encoded, err := json.Marshal(o)
	if err != nil { // strings, numbers and structs of them
		panic(err)
	}
	return string(encoded)
}
