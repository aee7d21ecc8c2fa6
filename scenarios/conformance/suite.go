// Package conformance is the conformance suite ([suite.Conformance]) for Ginkgo. It has a spec for
// each scenario of the catalogue and a spec for each control run, which proves that the scenario
// can fail.
//
// 'skewproof conformance' runs the same suite and needs nothing else installed. This package is for
// 'go test ./scenarios/conformance -args --backend local' and for the ginkgo program, which can
// spread the specs over several processes.
//
// Each spec runs the skewproof program once, in its own process. A spec passes only if the verdict
// of this run is PASS, or KNOWN with --known. An inconclusive run fails the spec, and a run that
// the backend cannot carry out skips it; the spec gives the reason. At the end the suite writes the
// report.
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
	// spare is the time that Ginkgo's limit for a spec has beyond the limit of its run, so that the
	// run is ended first.
	spare = suite.KindShutdownGrace + 30*time.Second
	// grace is the time that an interrupted spec has to end its run.
	grace = suite.KindShutdownGrace + 15*time.Second
	// prepared is the time limit for the preparation before the first spec. Binaries that are not
	// cached may have to be built, which takes 5 minutes each.
	prepared = time.Hour
	// entry is the name of the report entry in which a spec leaves its outcome, as JSON, because
	// the specs may run in several processes.
	entry = "outcome"
)

// Declare declares the suite to Ginkgo: the preparation, a spec for each case, and the report at
// the end. Call it once, before RunSpecs. The suite fails if a spec fails, and also if no spec
// fails but the result of the report is not passed.
//
// If o.Program is empty, Declare builds the program from the sources of this package. It ignores
// o.Parallel, because Ginkgo spreads specs over processes in its own way.
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
	// If every spec is skipped, if there is no control run, or if specs were left out, no spec has
	// failed.
	ginkgo.ReportAfterSuite("what the suite comes to", func(_ ginkgo.SpecContext, r ginkgo.Report) {
		if r.SuiteSucceeded && !r.SuiteConfig.DryRun && report.Kind != "" {
			gomega.Expect(report.Result == reports.ResultPassed || report.Result == reports.ResultKnown && o.Spec.Known != "").
				To(gomega.BeTrue(), "%s: %s", report.Result, report.Sentence)
		}
	})
	return nil
}

// prepare makes the output directory and gets all programs, so that no spec has to wait for them.
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
	// As 'make build' and 'make test' do: with other flags, every package would be compiled again.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-o", o.Program, "github.com/skewproof/skewproof/cmd/skewproof")
	cmd.Stdout, cmd.Stderr = ginkgo.GinkgoWriter, ginkgo.GinkgoWriter
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build skewproof: %w; its output is above", err)
	}
	return nil
}

// carryOut is the body of the spec of a case.
func carryOut(ctx context.Context, k *suite.Case, o *suite.Conformance) {
	k.CarryOut(ctx, o.Program, o.Out)
	leave(k.Outcome)
	switch result, why := k.Result(); {
	case result == reports.ResultPassed, result == reports.ResultKnown && k.Spec.Known != "":
	case result == reports.ResultSkipped:
		ginkgo.Skip(why)
	default:
		ginkgo.Fail(why)
	}
}

// leave adds the outcome of a spec to Ginkgo's report. It encodes the outcome at once, because
// Ginkgo may encode an entry much later, when a pointer in it may refer to other values.
func leave(o suite.Outcome) {
	encoded, err := json.Marshal(o)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.AddReportEntry(entry, string(encoded), ginkgo.ReportEntryVisibilityNever)
}

// collect copies the outcomes that the specs left into their cases. It reports whether the suite is
// complete: no spec was interrupted or aborted.
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
