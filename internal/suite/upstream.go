package suite

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/upstreame2e"
	"github.com/skewproof/skewproof/reports"
)

// Upstream runs Kubernetes' own end-to-end tests against control planes of two versions: directly
// at an older server, to learn which tests pass without any proxy, and on the tested path.
type Upstream struct {
	Options
	// Spec holds the settings of all runs: versions, etcd, binaries, label. Its subject is that of
	// the tested path.
	Spec run.Spec
	// Path is one of [reports.PathDirect], [reports.PathOld] and [reports.PathBalancer].
	Path string
	// Tests is the version of the tests. Empty means Spec.To.
	Tests string
	// Focus is a regular expression that chooses among the specs of the selection. Empty means all.
	Focus string
	// Direct is the directory of an earlier suite on the direct path. If it is empty, this suite
	// runs the direct path too.
	Direct string
	// OnlyFailed runs the direct path afterwards, with the specs that failed on the tested path, and
	// not at all if none did. It takes half the time, and cannot tell which specs pass only by way
	// of the proxy. Without it, the direct path runs first, with all specs.
	OnlyFailed bool

	selection upstreame2e.Selection
	expected  upstreame2e.Catalogue
	focus     *regexp.Regexp
}

// testsLimit is the longest time that the tests may take. All of them take about ten minutes.
const testsLimit = 40 * time.Minute

// upstreamRun is one run of the suite.
type upstreamRun struct {
	path, subject string
	plan          *run.Plan
}

// Run carries out the runs, and shows and saves their results.
func (u *Upstream) Run(ctx context.Context) (reports.UpstreamTests, error) {
	report := reports.UpstreamTests{}
	if err := u.check(); err != nil {
		return report, err
	}
	direct, err := u.earlier()
	if err != nil {
		return report, err
	}
	binary, err := u.binary(ctx)
	if err != nil {
		return report, err
	}
	all, err := upstreame2e.List(ctx, binary)
	if err != nil {
		return report, err
	}
	if unknown := u.expected.Unknown(all, u.Tests); len(unknown) > 0 {
		return report, fmt.Errorf("specs/expected.yaml names specs that the tests %s do not have: %s; correct the names, or remove the entries",
			u.Tests, strings.Join(unknown, "; "))
	}
	chosen, left, err := u.selection.Choose(all, u.focus)
	if err != nil {
		return report, run.Usagef("--focus %q: %w", u.Focus, err)
	}
	runs, err := u.runs(chosen, direct == nil && !u.OnlyFailed)
	if err != nil {
		return report, err
	}
	var plans []*run.Plan
	for _, r := range runs {
		plans = append(plans, r.plan)
	}
	if err := u.Prepare(ctx, "upstream-e2e-"+u.Path+"-"+u.Spec.Subject, plans); err != nil {
		return report, err
	}
	fmt.Fprintf(u.Console.Progress, "%d of %d specs are chosen\n", len(chosen), len(all))
	report = reports.UpstreamTests{
		Metadata: reports.UpstreamMetadata{
			Made: reports.Made{StartedAt: time.Now().UTC(), SkewproofVersion: run.Version()}, Path: u.Path, Subject: u.Spec.Subject,
			From: u.Spec.From, To: u.Spec.To, Tests: u.Tests, Focus: u.Focus, Baseline: u.Direct,
			Tested: reports.Tested{Label: u.Spec.Label, Binaries: u.Binaries},
		},
		Left: left, Repetition: reports.Repetition{Reproduce: u.Reproduce, Environment: run.Machine()},
	}
	u.carryOutRuns(ctx, &report, runs, chosen, direct)
	report.Conclude()
	return report, Render(report, u.Out, u.Console)
}

// carryOutRuns carries out the runs, and the direct path afterwards if only failed specs need it,
// and fills in the report.
func (u *Upstream) carryOutRuns(
	ctx context.Context, report *reports.UpstreamTests, runs []upstreamRun, chosen []string, direct map[string]upstreame2e.Result,
) {
	began := time.Now()
	var onPath upstreame2e.Results
	take := func(r upstreamRun, results upstreame2e.Results) {
		if r.path == u.Path {
			onPath = results
		} else {
			direct = results.Specs
		}
	}
	u.carryOutSome(ctx, report, runs, chosen, take)
	failed := slices.DeleteFunc(slices.Clone(chosen), func(name string) bool { return onPath.Specs[name].Outcome != reports.SpecFailed })
	if u.OnlyFailed && direct == nil && len(failed) > 0 {
		again, err := u.runs(failed, true)
		if err != nil {
			report.Runs = append(report.Runs, reports.UpstreamRun{Path: reports.PathDirect, Subject: scenario.SubjectNone, Trouble: err.Error()})
		} else {
			u.carryOutSome(ctx, report, again[:1], failed, take)
		}
	}
	in := upstreame2e.Circumstances{Path: u.Path, Subject: u.Spec.Subject, From: u.Spec.From, Tests: u.Tests}
	report.Specs = upstreame2e.Compare(chosen, onPath, direct, u.expected, in)
	report.Metadata.DurationSeconds = reports.SecondsOf(time.Since(began))
}

// carryOutSome carries out runs, adds them to the report, and gives the results of each to take.
func (u *Upstream) carryOutSome(
	ctx context.Context, report *reports.UpstreamTests, runs []upstreamRun, chosen []string, take func(upstreamRun, upstreame2e.Results),
) {
	tasks := make([]task, len(runs))
	for i, r := range runs {
		tasks[i] = taskOf(r.plan, filepath.Join(u.Out, r.path))
	}
	for i, f := range u.carryOut(ctx, tasks) {
		r := runs[i]
		done := reports.UpstreamRun{Path: r.path, Subject: r.subject, Directory: r.path, DurationSeconds: reports.SecondsOf(f.Took)}
		results, err := upstreame2e.ReadResultsFile(run.Dir(tasks[i].spec.Out).TestResults())
		done.Violated, done.Trouble = violated(r.path, f.Report), cmp.Or(f.Problem, results.Setup, tooShort(r.plan, f.Report, results))
		if err != nil {
			done.Trouble = cmp.Or(done.Trouble, err.Error())
		}
		report.Runs = append(report.Runs, done)
		fmt.Fprintf(u.Console.Progress, "%s, subject %s: %s, %.0f s\n", r.path, r.subject, counts(chosen, results), f.Took.Seconds())
		take(r, results)
	}
}

// check fills in the defaults, and refuses settings that cannot be run.
func (u *Upstream) check() (err error) {
	u.Spec.Backend = scenario.BackendLocal
	u.Spec.From, u.Spec.To = cmp.Or(u.Spec.From, run.DefaultFrom), cmp.Or(u.Spec.To, run.DefaultTo)
	u.Tests = cmp.Or(u.Tests, release.Of(u.Spec.To))
	switch u.Path {
	case reports.PathDirect:
		if u.Spec.Subject != "" && u.Spec.Subject != scenario.SubjectNone {
			return run.Usagef("--subject %s: on the path direct no server has a proxy; leave it out, or choose --path old or balancer",
				u.Spec.Subject)
		}
		if u.OnlyFailed {
			return run.Usagef("--direct-only-failed is for the paths old and balancer")
		}
		if u.Direct != "" {
			return run.Usagef("--direct is for the paths old and balancer: the path direct makes these results")
		}
		u.Spec.Subject = scenario.SubjectNone
	case reports.PathOld, reports.PathBalancer:
		u.Spec.Subject = cmp.Or(u.Spec.Subject, scenario.SubjectBuiltin)
	default:
		return run.Usagef("--path %q: want direct, old or balancer", u.Path)
	}
	if u.OnlyFailed && u.Direct != "" {
		return run.Usagef("--direct and --direct-only-failed exclude each other: the results of --direct are there already")
	}
	if u.Spec.From == u.Spec.To {
		return run.Usagef("--from and --to are both %s: the tests are to meet servers of two versions", u.Spec.From)
	}
	if u.Spec.Subject == scenario.SubjectBuiltin {
		if err := local.CheckDesigns(u.Spec.From, u.Spec.To); err != nil {
			return run.Usagef("%w", err)
		}
	}
	if _, err := binaries.NewRef(binaries.E2ETest, u.Tests); err != nil {
		return run.Usagef("--tests: %w", err)
	}
	if u.Focus != "" {
		if u.focus, err = regexp.Compile(u.Focus); err != nil {
			return run.Usagef("--focus %q: %w", u.Focus, err)
		}
	}
	if u.selection, err = upstreame2e.DefaultSelection(); err != nil {
		return err
	}
	if u.expected, err = upstreame2e.DefaultExpected(); err != nil {
		return err
	}
	_, err = u.runs([]string{"any"}, u.Direct == "") // checks the rest of the Spec before minutes of building
	return err
}

// earlier returns the results of the earlier suite on the direct path, or nil if none is given.
func (u *Upstream) earlier() (map[string]upstreame2e.Result, error) {
	if u.Direct == "" {
		return nil, nil
	}
	saved, err := reports.ReadUpstream(filepath.Join(u.Direct, reports.UpstreamJSON))
	if err != nil {
		return nil, run.Usagef("--direct: %w", err)
	}
	m := saved.Metadata
	switch {
	case m.Path != reports.PathDirect:
		return nil, run.Usagef("--direct %s: its path is %s; give the directory of a suite with --path direct", u.Direct, m.Path)
	case m.From != u.Spec.From || m.To != u.Spec.To || m.Tests != u.Tests:
		return nil, run.Usagef("--direct %s: it ran the tests %s at servers %s and %s, and this suite the tests %s at %s and %s; give one of the same versions",
			u.Direct, m.Tests, m.From, m.To, u.Tests, u.Spec.From, u.Spec.To)
	}
	return upstreame2e.Saved(saved), nil
}

// binary gets e2e.test.
func (u *Upstream) binary(ctx context.Context) (string, error) {
	own, err := run.OverridesOf(u.Spec.Binaries)
	if err != nil {
		return "", err
	}
	b, err := (&binaries.Store{Overrides: own, Progress: u.Console.Progress}).Get(ctx, binaries.E2ETest, u.Tests)
	if err != nil {
		return "", run.BinaryError(err)
	}
	return b.Path, nil
}

// runs returns the runs of the suite. The direct path comes first if its results are needed.
func (u *Upstream) runs(chosen []string, direct bool) (all []upstreamRun, err error) {
	wanted := []upstreamRun{{path: u.Path, subject: u.Spec.Subject}}
	if direct && u.Path != reports.PathDirect {
		wanted = slices.Insert(wanted, 0, upstreamRun{path: reports.PathDirect, subject: scenario.SubjectNone})
	}
	for _, r := range wanted {
		spec := u.Spec
		spec.Subject, spec.NoLoad = r.subject, true
		spec.Own = &run.Own{
			Name: "upstream-e2e", Happens: happens[r.path], About: []string{"NoCrash"},
			Plan:    upstreamPlan(r.path, spec.From, spec.To, u.Tests, chosen),
			Command: u.command(r),
		}
		if r.plan, err = spec.Plan(); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// command is the command, without the program, that repeats one run of the suite.
func (u *Upstream) command(r upstreamRun) []string {
	words := []string{"upstream-e2e", "--path", r.path, "--from", u.Spec.From, "--to", u.Spec.To, "--tests", u.Tests}
	if r.path != reports.PathDirect {
		words = append(words, "--subject", r.subject)
	}
	if u.Focus != "" {
		words = append(words, "--focus", u.Focus)
	}
	return words
}

// violated returns the core invariants that a run violated and that count on its path. Without a
// proxy, controllers may do harm, so only a crash counts there.
func violated(path string, report *reports.RunReport) (names []string) {
	if report == nil {
		return nil
	}
	for _, name := range report.InProfile(invariant.GradeCore).Violated {
		if path != reports.PathDirect || name == "NoCrash" {
			names = append(names, name)
		}
	}
	return names
}

// counts says in words how many of the chosen specs had which outcome.
func counts(chosen []string, results upstreame2e.Results) string {
	by := map[reports.SpecOutcome]int{}
	for _, name := range chosen {
		by[cmp.Or(results.Specs[name].Outcome, reports.SpecNotRun)]++
	}
	var words []string
	for _, o := range []reports.SpecOutcome{reports.SpecPassed, reports.SpecFailed, reports.SpecSkipped, reports.SpecNotRun} {
		words = append(words, fmt.Sprintf("%d %s", by[o], o))
	}
	return strings.Join(words, ", ")
}
