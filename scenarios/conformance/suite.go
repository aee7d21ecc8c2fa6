package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/skewproof/skewproof/internal/release"
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
// once, before RunSpecs. The options must be valid.
func Declare(o Options) {
	var program Program
	ginkgo.SynchronizedBeforeSuite(func(ctx ginkgo.SpecContext) []byte {
		gomega.Expect(o.prepare(ctx)).To(gomega.Succeed())
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
				ginkgo.It(s.Name, ginkgo.Label(labels(s)...), ginkgo.SpecTimeout(limit+spare), ginkgo.GracePeriod(grace), func(ctx ginkgo.SpecContext) {
					o.scenario(ctx, program, s, limit)
				})
			})
		}
		for _, c := range runs {
			ginkgo.Describe(controlContainer, ginkgo.Label(labelControl), func() {
				ginkgo.It(c.Name+" on "+c.Control.Subject, ginkgo.Label(labels(c.Scenario)...), ginkgo.SpecTimeout(c.limit+spare), ginkgo.GracePeriod(grace),
					func(ctx ginkgo.SpecContext) { o.control(ctx, program, c) })
			})
		}
	})
	ginkgo.ReportAfterSuite("conformance report", func(ctx ginkgo.SpecContext, r ginkgo.Report) {
		gomega.Expect(reports.SaveConformance(o.Out, o.Report(r, unproven))).To(gomega.Succeed())
	}, ginkgo.NodeTimeout(time.Minute))
}

// What specs are called begins with these: "conformance upgrades quiet", "conformance negative control quiet on none". labelControl marks the latter.
const (
	container        = "conformance"
	controlContainer = "negative control"
	labelControl     = "control"
)

// scenario is the spec of one scenario.
func (o *Options) scenario(ctx context.Context, program Program, s scenarios.Scenario, limit time.Duration) {
	result := ofScenario(s)
	defer func() {
		ginkgo.AddReportEntry(entry, asJSON(outcome{Scenario: result}), ginkgo.ReportEntryVisibilityNever)
	}()
	if !s.Limits.Allows(o.Backend) {
		unsaid(result, reports.ResultSkipped, fmt.Sprintf("it does not run on %s: %s", o.Backend, s.Limits.Reason))
		ginkgo.Skip(result.Core.Reason)
	}
	result.Directory = filepath.Join("scenarios", s.Name)
	judgeScenario(result, program.Run(ctx, limit, filepath.Join(o.Out, result.Directory), o.words(s)...))
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
	result := &reports.ControlRun{
		Scenario: c.Name, Subject: c.Control.Subject, Backend: c.backend, MustViolate: c.Control.Invariant,
		Directory: filepath.Join("control", c.Name),
	}
	defer func() {
		ginkgo.AddReportEntry(entry, asJSON(outcome{Control: result}), ginkgo.ReportEntryVisibilityNever)
	}()
	judgeControl(result, program.Run(ctx, c.limit, filepath.Join(o.Out, result.Directory), c.words...))
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

// preparation is what the process that prepares tells those that run specs.
type preparation struct{ Program, Out string }

// prepare makes the output directory and gets all programs, so that no spec pays for that.
func (o *Options) prepare(ctx context.Context) (err error) {
	if o.Out == "" {
		if o.Out, err = os.MkdirTemp("", "skewproof-conformance-"); err != nil {
			return fmt.Errorf("create an output directory: %w; choose one with --out", err)
		}
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return fmt.Errorf("output directory %s: %w", o.Out, err)
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fmt.Errorf("create output directory %s: %w; choose another with --out", o.Out, err)
	}
	if o.Program == "" {
		o.Program = filepath.Join(o.Out, "skewproof")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.Program, "github.com/skewproof/skewproof/cmd/skewproof")
		if err := say(build, "build skewproof"); err != nil {
			return err
		}
	}
	if o.Program, err = filepath.Abs(o.Program); err != nil || o.Backend != scenarios.BackendLocal {
		return err
	}
	p := o.parameters(scenarios.Scenario{})
	return say(exec.CommandContext(ctx, o.Program, "binaries", "get", release.Of(p.From), release.Of(p.To)), "get the binaries to test")
}

// say runs a command with its output among that of the suite.
func say(cmd *exec.Cmd, what string) error {
	cmd.Stdout, cmd.Stderr = ginkgo.GinkgoWriter, ginkgo.GinkgoWriter
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w; its output is above", what, err)
	}
	return nil
}
