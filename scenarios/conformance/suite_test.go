package conformance

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/reports"
)

var (
	options    suite.Conformance
	labelsFlag = flag.String("labels", "", "which scenarios, by labels; that of Ginkgo, --label-filter, does as well")
)

// actVariable is an environment variable. If it is set, this test binary acts as the skewproof
// program; see failBeyondTheKEP.
const actVariable = "SKEWPROOF_CONFORMANCE_ACT"

func TestMain(m *testing.M) {
	if os.Getenv(actVariable) != "" {
		os.Exit(failBeyondTheKEP())
	}
	flags := pflag.NewFlagSet("conformance", pflag.ContinueOnError)
	options.Register(flags)
	flags.StringVar(&options.Program, "program", "", "the skewproof to run (default: it is built from the sources)")
	flags.VisitAll(func(f *pflag.Flag) { flag.Var(f.Value, f.Name, f.Usage) })
	flag.Parse()
	os.Exit(m.Run())
}

// TestConformance is the suite for 'go test -args' and for the ginkgo program. Without arguments it
// runs the smallest useful suite: the reference in the simulator, with its control run.
func TestConformance(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	configuration, reporter := ginkgo.GinkgoConfiguration()
	if *labelsFlag != "" {
		configuration.LabelFilter = *labelsFlag
	}
	alone := configuration.ParallelTotal == 1 && flag.CommandLine.NFlag() == onlyTestFlags()
	if alone {
		options.Spec.Backend, options.Spec.Subject, options.Controls, options.Out = "sim", "reference", suite.ControlsFew, t.TempDir()
		options.Spec.Known = run.KnownOnly // finding 46, which no proxy can prevent
		configuration.LabelFilter = "quiet || peer-crash"
	}
	reporter.SilenceSkips = true
	whole := configuration.Timeout
	// Each spec has its own limit. Ginkgo's default limit for the whole suite is one hour, which is
	// too short for the catalogue.
	configuration.Timeout, configuration.GracePeriod = 0, grace
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "ginkgo.timeout" { // the user set it; the ginkgo program always sets it
			configuration.Timeout = whole
		}
	})
	options.Labels, options.Version, options.Reproduce = configuration.LabelFilter, "built from source", commandLine(configuration.LabelFilter)
	if err := Declare(&options); err != nil {
		t.Fatal(err)
	}
	ginkgo.RunSpecs(t, "skewproof conformance", configuration, reporter)
	if !alone {
		return
	}
	report, err := reports.ReadConformance(filepath.Join(options.Out, reports.ConformanceFile))
	if err != nil {
		t.Fatal(err)
	}
	if report.Result != reports.ResultKnown || report.Profiles[0].Passed != 1 || report.Profiles[0].Known != 1 ||
		len(report.Control.Runs) != 1 || len(report.Control.Unproven) != 1 {
		t.Errorf("the report says %s, %s; %+v, control %+v", report.Result, report.Sentence, report.Profiles, report.Control)
	}
}

// Ginkgo passes a suite if no spec failed. But a suite that shows nothing must fail. Here it shows
// nothing because the only scenario does not run in the simulator.
func TestASuiteThatShowsNothingFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	said, err := exec.CommandContext(t.Context(), self, "-test.run=^TestConformance$", "-backend=sim", "-subject=reference",
		"-labels=two-servers-one-hostname", "-program="+self, "-out="+dir).CombinedOutput()
	report, readErr := reports.ReadConformance(filepath.Join(dir, reports.ConformanceFile))
	if readErr != nil {
		t.Fatalf("%v; it said:\n%s", readErr, said)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || report.Result != reports.ResultInconclusive || report.Profiles[0].Skipped != 1 || !strings.Contains(string(said), report.Sentence) {
		t.Errorf("error %v, result %s (%s), want the suite to fail and to say why:\n%s", err, report.Result, report.Sentence, said)
	}
}

// A spec may fail only because of -strict, which counts invariants beyond the KEP. Such a failure
// is reported like any other.
func TestASpecThatFailsBeyondTheKEPSaysWhy(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	script := "#!/bin/sh\n" + actVariable + "=1 exec " + shell.Quote(self) + ` "$@"` + "\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), self, "-test.run=^TestConformance$", "-backend=sim", "-labels=quiet", "-strict", "-program="+program,
		"-out="+filepath.Join(dir, "out")).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "failed, extended: violated Available: c answered 503.") || strings.Contains(string(said), "%!") {
		t.Errorf("error %v, want the suite to fail and to say why:\n%s", err, said)
	}
}

// failBeyondTheKEP writes the report of a run that violated an invariant beyond the KEP, and
// returns the exit code of this run.
func failBeyondTheKEP() int {
	spec, err := run.ReadSpec(os.Stdin)
	if err != nil {
		return 4
	}
	held := invariant.Verdict{Name: "NoLoop", Grade: invariant.GradeCore, Outcome: invariant.OutcomePass, About: true, Checked: 1}
	broken := invariant.Verdict{Name: "Available", Grade: invariant.GradeExtended, Outcome: invariant.OutcomeFail, Checked: 1, Violations: 1}
	left := reports.RunReport{
		TypeMeta: reports.OfKind(reports.Kind), Metadata: reports.Metadata{Complete: true, From: "v1.36.3", To: "v1.37.1"},
		Invariants: []reports.Invariant{{Verdict: held}, {Verdict: broken}},
		Verdict:    reports.Verdict{Outcome: invariant.OutcomeFail, Strict: true, Failed: []string{"Available"}, Sentence: "c answered 503."},
	}
	left.Timeline.BucketSeconds = 1
	if os.Mkdir(spec.Out, 0o700) != nil || reports.WriteAll(spec.Out, left) != nil {
		return 3
	}
	return 1
}

// commandLine returns a command that repeats the suite. It leaves out --program and --out, which
// name files of this machine.
func commandLine(labels string) string {
	words := []string{"go test ./scenarios/conformance -timeout 4h -args"}
	flag.Visit(func(f *flag.Flag) {
		if !strings.Contains(f.Name, ".") && f.Name != "out" && f.Name != "program" && f.Name != "labels" {
			value := f.Value.String()
			if list, ok := f.Value.(pflag.SliceValue); ok {
				value = strings.Join(list.GetSlice(), ",")
			}
			words = append(words, "-"+f.Name+"="+shell.Quote(value))
		}
	})
	if labels != "" {
		words = append(words, "-labels="+shell.Quote(labels))
	}
	return strings.Join(words, " ")
}

// onlyTestFlags counts the flags of the testing package that are set.
func onlyTestFlags() (n int) {
	flag.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "test.") {
			n++
		}
	})
	return n
}
