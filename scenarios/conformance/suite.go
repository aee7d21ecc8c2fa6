// Package conformance is the conformance suite ([suite.Conformance]) for Ginkgo: a spec for each
// scenario of the catalogue, and one for each proof that the scenario can fail.
//
// 'skewproof conformance' runs the same suite with nothing else installed; 'go test
// ./scenarios/conformance -args --backend local' and the ginkgo program, which can spread it over
// several processes, run it by this package.
//
// A spec is one run of the program, in a process of its own. Only a run whose verdict is pass is a
// passed spec: an inconclusive one fails, with the reason, and one that cannot be carried out on
// the backend is skipped, with the reason. In the end the report is written.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/reports"
)

const (
	// spare is by how much Ginkgo's own limit of a spec exceeds that of its run, which is to end
	// the run first.
	spare = suite.KindShutdownGrace + 30*time.Second
	// grace is what Ginkgo gives an interrupted spec to end its run.
	grace = suite.KindShutdownGrace + 15*time.Second
	// prepared bounds what happens before the first spec: binaries that are not cached may have to
	// be built, at 5 minutes each.
	prepared = time.Hour
	// entry is the name under which a spec leaves what it came to, as JSON: specs may be run in
	// several processes.
	entry = "outcome"
)

// Declare declares the suite to Ginkgo: the preparation, a spec for each case, and the report at
// the end. Call it once, before RunSpecs. The suite fails if a spec does, and also if none does and
// the report says that nothing was shown.
//
// If o.Program is empty, it is built from the sources that this package belongs to. o.Parallel
// means nothing here: Ginkgo has its own way to spread specs over processes.
func Declare(o *suite.Conformance) error {
	cases, unproven, err := o.Cases()
	if err != nil {
		return err
	}
	o.Console.Out, o.Console.Progress, o.Parallel = ginkgo.GinkgoWriter, ginkgo.GinkgoWriter, 1
	type ready struct{ Program, Out string }
	ginkgo.SynchronizedBeforeSuite(func(ctx ginkgo.SpecContext) []byte {
		gomega.Expect(prepare(ctx, o, cases)).To(gomega.Succeed())
		encoded, err := json.Marshal(ready{o.Program, o.Out})
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return encoded
	}, func(encoded []byte) {
		var r ready
		gomega.Expect(json.Unmarshal(encoded, &r)).To(gomega.Succeed())
		o.Program, o.Out = r.Program, r.Out
	}, ginkgo.NodeTimeout(prepared))

	ginkgo.Describe("conformance", func() {
		for _, k := range cases {
			ginkgo.It(k.Name, ginkgo.Label(k.Labels...), ginkgo.SpecTimeout(k.Limit+spare), ginkgo.GracePeriod(grace),
				func(ctx ginkgo.SpecContext) { carryOut(ctx, k, o) })
		}
	})
	var report reports.ConformanceReport
	ginkgo.ReportAfterSuite("conformance report", func(_ ginkgo.SpecContext, r ginkgo.Report) {
		complete := collect(cases, r)
		var err error
		report, err = o.Conclude(cases, unproven, r.StartTime, complete)
		gomega.Expect(err).To(gomega.Succeed())
	}, ginkgo.NodeTimeout(grace+time.Minute))
	// Where every spec is skipped, where there is no control run, and where specs were left out,
	// none has failed.
	ginkgo.ReportAfterSuite("what the suite comes to", func(_ ginkgo.SpecContext, r ginkgo.Report) {
		if r.SuiteSucceeded && !r.SuiteConfig.DryRun && report.Kind != "" {
			gomega.Expect(report.Result).To(gomega.Equal(reports.ResultPassed), "%s", report.Sentence)
		}
	})
	return nil
}

// prepare makes the output directory and gets all programs, so that no spec has to wait for that.
func prepare(ctx context.Context, o *suite.Conformance, cases []*suite.Case) (err error) {
	if o.Out == "" {
		if o.Out, err = os.MkdirTemp("", "skewproof-conformance-"); err != nil {
			return fmt.Errorf("create an output directory: %w; choose one with --out", err)
		}
	}
	build := o.Program == ""
	if build {
		o.Program = filepath.Join(o.Out, "skewproof")
	}
	if o.Program, err = filepath.Abs(o.Program); err != nil {
		return err
	}
	if err := o.PrepareCases(ctx, cases); err != nil || !build {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", o.Program, "github.com/skewproof/skewproof/cmd/skewproof")
	cmd.Stdout, cmd.Stderr = ginkgo.GinkgoWriter, ginkgo.GinkgoWriter
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build skewproof: %w; its output is above", err)
	}
	return nil
}

// carryOut is the spec of a case.
func carryOut(ctx context.Context, k *suite.Case, o *suite.Conformance) {
	k.CarryOut(ctx, o.Program, o.Out)
	leave(k.Outcome)
	switch result, why := k.Result(); result {
	case reports.ResultPassed:
	case reports.ResultSkipped:
		ginkgo.Skip(why)
	default:
		ginkgo.Fail(why)
	}
}

// leave leaves what a spec came to for the report, encoded here and now: what a pointer points to
// may be shown long after.
func leave(o suite.Outcome) {
	encoded, err := json.Marshal(o)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.AddReportEntry(entry, string(encoded), ginkgo.ReportEntryVisibilityNever)
}

// collect gives to the cases what their specs left, and tells whether none was ended early.
func collect(cases []*suite.Case, r types.Report) (complete bool) {
	complete = true
	for _, spec := range r.SpecReports {
		complete = complete && !spec.State.Is(types.SpecStateInterrupted|types.SpecStateAborted)
		i := slices.IndexFunc(cases, func(k *suite.Case) bool { return "conformance "+k.Name == spec.FullText() })
		if i < 0 {
			continue
		}
		var left suite.Outcome
		for _, e := range spec.ReportEntries {
			text, ok := e.Value.GetRawValue().(string)
			if !ok || e.Name != entry || json.Unmarshal([]byte(text), &left) != nil {
				continue
			}
			if left.Scenario != nil || left.Control != nil {
				cases[i].Outcome = left
			}
		}
	}
	return complete
}
