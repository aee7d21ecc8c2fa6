package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim"
)

// Conformance is the conformance suite: scenarios of the catalogue, each with its negative control,
// and one report ([reports.ConformanceReport]). If no negative control fails as it must, the report
// says "inconclusive".
type Conformance struct {
	Options
	// Spec holds the settings of all runs. A scenario that needs more servers gets more.
	Spec run.Spec
	// Labels choose the scenarios, in Ginkgo's language. If it is empty, all scenarios are chosen.
	Labels string
	// Controls says which scenarios have a control run.
	Controls Controls
	// Product describes the tested product in the report. An empty name is filled in from the
	// subject.
	Product reports.Product
	// Version and Environment are for the report. Version is the version of the testing program,
	// and Environment describes the machine.
	Version     string
	Environment []string
}

// Controls says which of the chosen scenarios run a second time, on a subject on which they must
// fail.
type Controls string

// These are the choices of control runs.
const (
	ControlsEach Controls = "each" // every scenario that has one
	ControlsFew  Controls = "few"  // the quickest scenario for each invariant that some scenario must be able to violate
)

// String, Set and Type make Controls a flag. The zero value means ControlsEach.
func (c *Controls) String() string { return string(cmp.Or(*c, ControlsEach)) }

// Set sets the choice by its name.
func (c *Controls) Set(s string) error {
	if !slices.Contains([]Controls{ControlsEach, ControlsFew}, Controls(s)) {
		return fmt.Errorf("want %s or %s", ControlsEach, ControlsFew)
	}
	*c = Controls(s)
	return nil
}

// Type is the text that the help shows.
func (*Controls) Type() string { return "each|few" }

// Register declares the flags for all commands that run the suite.
func (c *Conformance) Register(flags *pflag.FlagSet) {
	s := &c.Spec
	flags.StringVar(&s.Backend, "backend", scenario.BackendLocal,
		"what the servers run on: local, kind, sim, or existing (servers that run already)")
	flags.StringVar(&s.Subject, "subject", "", "whose Mixed Version Proxy is tested, as in 'skewproof run' (default builtin)")
	flags.StringVar(&s.From, "from", "", "the older kube-apiserver version, as in 'skewproof run'")
	flags.StringVar(&s.To, "to", "", "the newer kube-apiserver version, as in 'skewproof run'")
	flags.IntVar(&s.Servers, "servers", 0, "number of kube-apiservers (default: what 'skewproof run' takes, or more where a scenario needs more)")
	RegisterExisting(flags, s)
	flags.Var(&c.Controls, "controls", "negative controls: one for each scenario (each), or only the quickest for each invariant (few)")
	flags.BoolVar(&s.Strict, "strict", false, "let invariants beyond the KEP count as well")
	RegisterKnown(flags, &s.Known)
	RegisterBinaries(flags, s, "")
	flags.StringVar(&c.Product.Name, "product", "", "what the report calls the proxy that is tested (default: by subject)")
	flags.StringVar(&c.Product.Version, "product-version", "", "its version")
	flags.StringVar(&c.Product.URL, "product-url", "", "where to read about it")
	flags.StringVar(&c.Out, "out", "", "directory for reports and runs (default _out/conformance-BACKEND-SUBJECT-TIME)")
}

// RegisterKnown declares the flag that lets known failures pass.
func RegisterKnown(flags *pflag.FlagSet, known *string) {
	flags.StringVar(known, "known", "", "exit with 0 if findings explain everything that failed: those of docs/findings.md, and with --known=FILE those in that file as well")
	flags.Lookup("known").NoOptDefVal = run.KnownOnly
}

// RegisterBinaries declares the flags that name the tested programs. If only is set, the help says
// that --binary is for that backend.
func RegisterBinaries(flags *pflag.FlagSet, s *run.Spec, only string) {
	if s.Binaries == nil {
		s.Binaries = binaries.Overrides{}
	}
	flags.Var(s.Binaries, "binary", "use a binary of your own, as COMPONENT@VERSION=PATH; may be repeated. $"+binaries.OverrideEnv+
		" can name some too, separated by commas"+only)
	flags.StringVar(&s.Label, "label", "", "a name for the tested build in reports, such as the name of a patch")
}

// RegisterExisting declares the flags that name servers which run already.
func RegisterExisting(flags *pflag.FlagSet, s *run.Spec) {
	flags.StringVar(&s.Kubeconfig, "kubeconfig", "", "for --backend existing: the file that names the servers, a context for each")
	flags.StringSliceVar(&s.Contexts, "contexts", nil, "for --backend existing: the contexts to test (default: all)")
}

// Choose returns the scenarios that labels choose, in the order of the catalogue. It returns an
// error if labels choose none.
func Choose(expression string) ([]scenario.Scenario, error) {
	chooses, err := types.ParseLabelFilter(expression)
	if err != nil {
		return nil, run.Usagef("labels %q: %s; write them like 'smoke' or 'network && !slow'", expression, plainly(err))
	}
	chosen := slices.DeleteFunc(scenarios.All(), func(s scenario.Scenario) bool { return !chooses(labels(s)) })
	if len(chosen) == 0 {
		return nil, run.Usagef("labels %q choose no scenario: 'skewproof list -o json' shows the labels of each", expression)
	}
	return chosen, nil
}

// labels are the labels that can choose a scenario: its own labels, those of its family, and its
// name.
func labels(s scenario.Scenario) []string {
	all := slices.Concat(s.Labels, s.Family.Labels(), []string{s.Name})
	slices.Sort(all)
	return slices.Compact(all)
}

// plainly returns the last line of an error that Ginkgo formatted for a terminal. This line says
// what is wrong.
func plainly(err error) string {
	message := err.Error()
	var laidOut types.GinkgoError
	if errors.As(err, &laidOut) {
		message = laidOut.Message
	}
	lines := strings.Split(strings.TrimSpace(message), "\n")
	return strings.TrimSuffix(strings.TrimSpace(lines[len(lines)-1]), ".")
}

// check refuses settings that every single run would refuse, and settings that make no sense for a
// suite.
func (c *Conformance) check() error {
	s := c.Spec
	existing := s.Backend == scenario.BackendExisting
	switch {
	case s.Servers < 0:
		return run.Usagef("%d servers: want a number above 0; a scenario that needs more gets more", s.Servers)
	case !existing && (s.Kubeconfig != "" || len(s.Contexts) > 0):
		return run.Usagef("a kubeconfig and contexts are for the backend %s, not %s", scenario.BackendExisting, s.Backend)
	case !existing && cmp.Or(s.From, run.DefaultFrom) == cmp.Or(s.To, run.DefaultTo):
		return run.Usagef("from and to are both %s: with one version nothing is skewed, and no control run can fail; give two versions",
			cmp.Or(s.To, run.DefaultTo))
	case existing && s.Kubeconfig == "":
		return run.Usagef("--backend %s needs --kubeconfig: the file that names the servers, a context for each", s.Backend)
	case existing && c.Parallel > 1:
		return run.Usagef("parallel %d: servers that run already get the requests of one run at a time, and no more than announced; leave it out",
			c.Parallel)
	case existing && (s.From+s.To != "" || s.Servers != 0):
		return run.Usagef("versions and number of servers that run already are what they are: leave them out")
	}
	s.Scenario = "quiet" // every backend, subject and pair of versions can run it
	_, err := s.Plan()
	return err
}

// tested is the name of the tested subject in reports.
func (c *Conformance) tested() string {
	if c.Spec.Backend == scenario.BackendExisting {
		return cmp.Or(c.Spec.Subject, run.SubjectExternal)
	}
	return cmp.Or(c.Spec.Subject, scenario.SubjectBuiltin)
}

// Run runs the suite, shows its progress, and shows and saves the report. Runs begin in the order
// of the catalogue. When ctx ends, Run ends the active runs and begins no others. The report says
// so.
func (c *Conformance) Run(ctx context.Context) (reports.ConformanceReport, error) {
	cases, unproven, err := c.Cases()
	if err != nil {
		return reports.ConformanceReport{}, err
	}
	if err := c.PrepareCases(ctx, cases); err != nil {
		return reports.ConformanceReport{}, err
	}
	fmt.Fprintln(c.Console.Out, c.expected(cases))
	began := time.Now()
	tasks := make([]task, len(cases))
	for i, k := range cases {
		if k.wanted && k.plan != nil {
			tasks[i] = k.task(c.Out)
		}
	}
	for i, f := range c.carryOut(ctx, tasks) {
		k := cases[i]
		if k.plan != nil && !k.wanted || !f.Begun {
			continue
		}
		if k.plan != nil {
			k.finish(f)
		}
		result, why := k.Result()
		fmt.Fprintf(c.Console.Progress, "%d of %d: %s, %.0f s: %s\n", i+1, len(cases), k.Name, k.Took().Seconds(), cmp.Or(why, string(result)))
	}
	return c.Conclude(cases, unproven, began, true)
}

// DryRun prints which runs the suite would carry out, with the command line of each. It starts
// nothing and makes no directory.
func (c *Conformance) DryRun(out io.Writer) error {
	cases, _, err := c.Cases()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, c.expected(cases))
	for _, k := range cases {
		line := "not run"
		switch {
		case k.plan != nil && k.wanted:
			line = k.Spec.Command()
		case k.plan != nil:
			line = "not run: " + string(reports.ResultSkipped)
		}
		if _, err := fmt.Fprintf(out, "%s\n    %s\n", k.Name, line); err != nil {
			return err
		}
	}
	return nil
}

// PrepareCases is [Options.Prepare] for cases.
func (c *Conformance) PrepareCases(ctx context.Context, cases []*Case) error {
	var plans []*run.Plan
	for _, k := range cases {
		if k.wanted && k.plan != nil {
			plans = append(plans, k.plan)
		}
	}
	return c.Prepare(ctx, "conformance-"+c.Spec.Backend+"-"+c.tested(), plans)
}

// Conclude makes the report from cases that are finished or were not reached, and saves and shows
// it. complete is false if the suite was ended early for a reason that no case knows.
func (c *Conformance) Conclude(cases []*Case, unproven []reports.Unproven, began time.Time, complete bool) (reports.ConformanceReport, error) {
	report := c.report(cases, unproven, began, complete)
	junit, err := junitOf(cases, report)
	if err == nil {
		err = reports.SaveConformance(c.Out, report, junit)
	}
	fmt.Fprintln(c.Console.Out)
	return report, RenderConformance(report, c.Out, c.Console, err)
}

// RenderConformance shows a report that was saved in dir. If saved is not nil, the report could not
// be saved because of that error.
func RenderConformance(report reports.ConformanceReport, dir string, c run.Console, saved error) error {
	return c.Show(dir, saved, func(shown reports.SummaryOptions) error {
		return reports.WriteConformanceSummary(c.Out, report, shown)
	})
}

func (c *Conformance) report(cases []*Case, unproven []reports.Unproven, began time.Time, complete bool) reports.ConformanceReport {
	r := reports.ConformanceReport{
		Metadata: reports.ConformanceMetadata{
			Made:   reports.NewMade(began, c.Version),
			Labels: c.Labels, Strict: c.Spec.Strict, Known: c.Spec.Known != "", Complete: complete,
		},
		Product: c.Product, Reproduce: c.Reproduce, Environment: c.Environment,
		Scenarios: []reports.ConformanceScenario{},
		Control:   reports.ConformanceControl{Runs: []reports.ControlRun{}, Unproven: slices.Clone(unproven)},
	}
	r.Product.Tested = reports.Tested{Label: c.Spec.Label, Binaries: c.Binaries}
	r.Product.Backend, r.Product.Subject = c.Spec.Backend, c.tested()
	for _, k := range cases {
		r.Product.Subject = cmp.Or(k.Subject, r.Product.Subject)
	}
	if c.Spec.Backend != scenario.BackendExisting {
		r.Product.From, r.Product.To = cmp.Or(c.Spec.From, run.DefaultFrom), cmp.Or(c.Spec.To, run.DefaultTo)
	}
	r.Product.Name = cmp.Or(r.Product.Name, productNames[r.Product.Subject])
	for _, k := range cases {
		r.Metadata.Complete = r.Metadata.Complete && !k.Interrupted && !k.notReached()
		switch {
		case k.Scenario != nil:
			r.Scenarios = append(r.Scenarios, *k.Scenario)
		case k.Control.Result == reports.ResultSkipped:
			r.Control.Unproven = append(r.Control.Unproven, reports.Unproven{Scenario: k.Control.Scenario, Reason: k.Control.Reason})
		default:
			r.Control.Runs = append(r.Control.Runs, *k.Control)
		}
	}
	r.Conclude()
	return r
}

// productNames are the names of products, by subject.
var productNames = map[string]string{
	scenario.SubjectBuiltin:   "kube-apiserver's own Mixed Version Proxy",
	scenario.SubjectReference: "skewproof's reference proxy",
	sim.SubjectAlpha:          "Mixed Version Proxy as designed for 1.28",
	scenario.SubjectNone:      "no proxy",
	run.SubjectExternal:       "not told: give --product",
}

// expected says in a line what will run, and about how long that takes on real processes.
func (c *Conformance) expected(cases []*Case) string {
	var scenarios, controls int
	var takes time.Duration
	for _, k := range cases {
		switch {
		case k.plan == nil:
			continue
		case k.Scenario != nil:
			scenarios++
		default:
			controls++
		}
		if k.Spec.Backend != scenario.BackendSim {
			takes += run.Expected(k.plan.Schedule)
		}
	}
	said := fmt.Sprintf("scenarios: %d, control runs: %d", scenarios, controls)
	if controls == 0 {
		said += " (so the result will be inconclusive: choose one more scenario that has a control, such as quiet)"
	}
	if c.Spec.Backend == scenario.BackendSim {
		return said
	}
	parallel := max(1, c.Parallel)
	said += fmt.Sprintf(", about %d min", int((takes / time.Duration(parallel)).Round(time.Minute).Minutes()))
	if parallel > 1 {
		said += fmt.Sprintf(" with %d at a time, if the machine keeps up", parallel)
	}
	return said
}
