package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/scenarios/conformance"
	"github.com/skewproof/skewproof/sim"
)

// runFlags are the flags of 'skewproof run'.
type runFlags struct {
	// given tells which flags the command line has; nil: none.
	given            func(name string) bool
	backend, subject string
	from, to, etcd   string
	servers          int
	qps              float64
	seed             uint64
	out              string
	keep, dryRun     bool
	onlyReads        bool
	strict           bool
	overrides        binaries.Overrides
	existing         existingFlags
}

func newRun() *cobra.Command {
	f := runFlags{overrides: binaries.Overrides{}}
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Carry out a scenario, judge what was recorded, and leave a report",
		Long: `Carry out a scenario on a control plane of several versions, judge what was recorded, and leave a report.

On the backend local the control plane is made of real kube-apiservers in Linux namespaces of their own: no root, no Docker, no port of
this machine, and nothing can leave it. Binaries that are not in the cache are downloaded, or built from the published Go modules
(4 to 5 minutes each, once).

On the backend kind it is a kind cluster whose control-plane nodes run different versions; it needs a Docker engine, and node images made by
'make kind-images'.

On the backend sim the real proxy code runs on a virtual clock and a simulated network, in seconds and without binaries; what each
version serves was recorded from real ones. The same --seed gives the same run, to the byte.

On the backend existing the servers are those that a kubeconfig names, a context for each. They are only read: scenarios that change or
harm a control plane are refused, and what cannot be seen without its logs is not judged.`,
		Example: `  skewproof run rolling-upgrade
  skewproof run restart-during-partition --from v1.36.3 --to v1.37.1 --out _out/restart
  skewproof run rolling-upgrade --subject reference
  skewproof run rolling-upgrade --subject none     # the negative control: it must fail
  skewproof run rolling-upgrade --backend kind
  skewproof run peer-partition --backend sim --servers 20
  skewproof run quiet --backend existing --kubeconfig FILE --contexts cp-1,cp-2,cp-3
  skewproof run quiet --keep                       # look around with 'skewproof shell'`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given, f.existing.possible = cmd.Flags().Changed, true
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	f.existing.register(cmd.Flags())
	cmd.Flags().Lookup("qps").Usage += fmt.Sprintf("; with --backend existing %d unless it is given", gentleQPS)
	cmd.Flags().BoolVar(&f.keep, "keep", false, "hold the cluster after the verdict, until Ctrl-C")
	cmd.Flags().BoolVar(&f.onlyReads, "only-reads", false, "leave out of the plan what changes, configures or harms the servers, as --backend existing does")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the steps and every server's command line, and start nothing")
	return cmd
}

// register declares the flags that every way of running a scenario has.
func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.backend, "backend", backendLocal, "what the servers run on: local (real processes), kind (the nodes of a kind cluster), sim (virtual time) "+
		"or, for 'skewproof run', existing (servers that run already, which are only read)")
	flags.StringVar(&f.subject, "subject", scenario.SubjectBuiltin, "whose Mixed Version Proxy is tested: builtin (the kube-apiserver's own), "+
		"reference (a sidecar, 'skewproof proxy', in front of each kube-apiserver), none (switched off, the negative control) or, in sim only, "+
		"alpha (the design of 1.28 in every server)")
	flags.BoolVar(&f.strict, "strict", false, "let invariants beyond the KEP count as well")
	f.registerPlan(flags)
}

// registerPlan declares the flags that say what a scenario is carried out with, on whatever backend.
func (f *runFlags) registerPlan(flags *pflag.FlagSet) {
	flags.StringVar(&f.from, "from", conformance.DefaultFrom, "the older kube-apiserver version")
	flags.StringVar(&f.to, "to", conformance.DefaultTo, "the newer kube-apiserver version; the same as --from for a cluster of one version")
	flags.IntVar(&f.servers, "servers", conformance.DefaultServers, fmt.Sprintf("number of kube-apiservers: at most %d, in sim %d, on kind %d", local.MaxServers, maxSimulated, kind.MaxServers))
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the load's choices; in sim of everything that is left to chance")
	flags.StringVar(&f.out, "out", "", "directory for history, logs and reports (default _out/NAME-SUBJECT-TIME)")
	f.registerReal(flags, "")
}

// registerReal declares the flags that say what real processes are made of, and how much is asked of them. The help says of each that it is for only
// that; empty: for every backend.
func (f *runFlags) registerReal(flags *pflag.FlagSet, only string) {
	if only != "" {
		only = " (" + only + " only)"
	}
	flags.Float64Var(&f.qps, "qps", 240, "requests per second, over all servers"+only)
	flags.StringVar(&f.etcd, "etcd", binaries.DefaultEtcd, "etcd version"+only)
	flags.Var(f.overrides, "binary", "use a binary of your own, as COMPONENT@VERSION=PATH; may be repeated. $"+binaries.OverrideEnv+
		" can name some too, separated by commas"+only)
}

func (f *runFlags) run(ctx context.Context, name string, out, progress io.Writer) error {
	if f.backend == backendExisting {
		return f.runExisting(ctx, name, out, progress)
	}
	if err := f.existing.unused(); err != nil {
		return &exitError{exitUsage, err}
	}
	chosen, plan, err := f.plan(name)
	if err != nil {
		return err
	}
	run := f.describe(chosen, plan)
	switch {
	case f.dryRun && f.backend == backendSim:
		return f.dryRunSimulated(out, run, plan)
	case f.dryRun && f.backend == backendKind:
		return dryRunKind(out, run, plan)
	case f.dryRun:
		return dryRun(out, run, plan)
	}
	if f.backend == backendLocal {
		if err := f.environmentOverrides(); err != nil { // the command line names them: the environment may be another then
			return err
		}
	}
	run.Reproduce = f.commandLine(name)
	if f.backend == backendSim {
		return f.simulate(ctx, run, plan, out)
	}
	if f.backend == backendKind {
		return f.runKind(ctx, run, plan, out, progress)
	}
	_, err = f.runReal(ctx, run, plan, out, progress)
	return err
}

// plan checks everything that can be checked before anything is fetched or started.
func (f *runFlags) plan(name string) (scenario.Scenario, scenario.Plan, error) {
	fail := func(err error) (scenario.Scenario, scenario.Plan, error) {
		return scenario.Scenario{}, scenario.Plan{}, &exitError{exitUsage, err}
	}
	chosen, err := scenarios.Find(name)
	if err != nil {
		return fail(err)
	}
	for flag, version := range map[string]string{"--from": f.from, "--to": f.to} {
		r, err := release.Parse(version)
		if err == nil {
			_, err = binaries.ParseVersion(binaries.KubeAPIServer, r.Version)
		}
		if err != nil {
			return fail(fmt.Errorf("%s: %w", flag, err))
		}
	}
	if _, err := binaries.ParseVersion(binaries.Etcd, f.etcd); err != nil {
		return fail(fmt.Errorf("--etcd: %w", err))
	}
	if f.given == nil || !f.given("servers") { // the default is for scenarios that do with few
		f.servers = max(f.servers, chosen.MinServers)
	}
	switch {
	case !slices.Contains([]string{backendLocal, backendKind, backendSim}, f.backend):
		return fail(fmt.Errorf("--backend %q: want %s", f.backend, f.existing.backends()))
	case !slices.Contains(f.knownSubjects(), f.subject):
		return fail(fmt.Errorf("--subject %q: the backend %s has %s", f.subject, f.backend, strings.Join(f.knownSubjects(), ", ")))
	case !chosen.Limits.Allows(f.backend):
		return fail(fmt.Errorf("--backend %s: %s runs on %s only, %s", f.backend, name, strings.Join(chosen.Limits.Backends, ", "), chosen.Limits.Reason))
	case semver.Compare(f.to, f.from) < 0:
		return fail(wrongOrder(f.from, f.to, f.given))
	case chosen.NeedsTwoVersions && f.from == f.to:
		return fail(fmt.Errorf("--from and --to are both %s: %s is about what only some servers serve, and needs two versions", f.to, name))
	case f.servers < chosen.MinServers || f.servers > f.mostServers():
		return fail(fmt.Errorf("--servers %d: %s needs %d to %d on the backend %s", f.servers, name, chosen.MinServers, f.mostServers(), f.backend))
	}
	if err := f.checkQPS(); err != nil {
		return fail(err)
	}
	plan := chosen.Plan(scenario.Parameters{Servers: f.servers, From: f.from, To: f.to, Bounds: history.DefaultBounds, ReadOnly: f.onlyReads})
	if err := plan.Validate(); err != nil {
		return fail(fmt.Errorf("scenario %s: %w", name, err))
	}
	if f.onlyReads {
		if err := plan.OnlyReads(); err != nil {
			return fail(fmt.Errorf("--only-reads: %s does more: %w", name, err))
		}
	}
	if err := f.checkBackend(plan); err != nil {
		return fail(err)
	}
	if f.subject == scenario.SubjectBuiltin {
		if err := local.CheckDesigns(f.from, f.to); err != nil {
			return fail(err)
		}
	}
	return chosen, plan, nil
}

// checkQPS refuses a rate that no load can have, in the simulator or elsewhere.
func (f *runFlags) checkQPS() error {
	if !(f.qps >= sim.MinQPS && f.qps <= sim.MaxQPS) { // nor is NaN one
		return fmt.Errorf("--qps %v: want a rate of %v to %v", f.qps, sim.MinQPS, sim.MaxQPS)
	}
	return nil
}

// wrongOrder says that the one version is older than the other; given tells which flags the command line has, nil: all.
func wrongOrder(from, to string, given func(flag string) bool) error {
	switch {
	case given != nil && !given("to"):
		return fmt.Errorf("--from %s is newer than the default --to %s: give --to as well", from, to)
	case given != nil && !given("from"):
		return fmt.Errorf("--to %s is older than the default --from %s: give --from as well", to, from)
	}
	return fmt.Errorf("--to %s is older than --from %s: give the older version as --from", to, from)
}

func (f *runFlags) knownSubjects() []string {
	if f.backend == backendSim {
		return simulatedSubjects
	}
	return scenario.Subjects
}

func (f *runFlags) mostServers() int {
	switch f.backend {
	case backendSim:
		return maxSimulated
	case backendKind:
		return kind.MaxServers
	default:
		return local.MaxServers
	}
}

// checkBackend checks what one backend can do and the other cannot.
func (f *runFlags) checkBackend(plan scenario.Plan) error {
	switch f.backend {
	case backendSim:
		return f.checkSimulated(plan)
	case backendKind:
		return f.checkKind(plan)
	}
	for _, version := range plan.Versions() { // a subject that a version does not have
		if _, err := local.Components(version, f.subject, local.Place{}, local.Files{}); err != nil {
			return err
		}
	}
	return f.checkBinaries()
}

// checkBinaries refuses a binary that no server would be: who gives one wants to see that one tested.
func (f *runFlags) checkBinaries() error {
	used := f.used()
	for ref := range f.overrides {
		if !slices.Contains(used, ref) {
			return fmt.Errorf("--binary %s@%s=%s: no server of this run is that; it has %s", ref.Component, ref.Version, f.overrides[ref], listed(used))
		}
	}
	for _, ref := range used {
		if err := f.overrides.Check(ref); err != nil {
			return fmt.Errorf("--binary: %w", err)
		}
	}
	return nil
}

// used are the binaries that a run is made of. Versions that cannot be read are not among them.
func (f *runFlags) used() (all []binaries.Ref) {
	for _, b := range []struct {
		component binaries.Component
		version   string
	}{{binaries.KubeAPIServer, release.Of(f.from)}, {binaries.KubeAPIServer, release.Of(f.to)}, {binaries.Etcd, f.etcd}} {
		if ref, err := binaries.NewRef(b.component, b.version); err == nil && !slices.Contains(all, ref) {
			all = append(all, ref)
		}
	}
	return all
}

// listed names binaries as --binary does.
func listed(refs []binaries.Ref) string {
	var words []string
	for _, ref := range refs {
		words = append(words, fmt.Sprintf("%s@%s", ref.Component, ref.Version))
	}
	return strings.Join(words, ", ")
}

func (f *runFlags) describe(chosen scenario.Scenario, plan scenario.Plan) history.Run {
	run := history.Run{
		Scenario: chosen.Name, Sentence: chosen.Happens, Backend: f.backend, Subject: f.subject, From: f.from, To: f.to,
		Seed: f.seed, QPS: f.qps, About: slices.Clone(chosen.About), Pressure: plan.Pressure, Bounds: plan.Bounds,
	}
	for _, s := range plan.Servers {
		run.Servers = append(run.Servers, history.Server{Name: s.Name, Version: s.Version})
	}
	switch f.backend {
	case backendSim:
		return run
	case backendKind:
		f.describeKind(&run, plan)
		return run
	}
	for i, p := range local.Places(run.Subject, run.Servers) {
		s := &run.Servers[i]
		p.Setup = plan.Servers[i].Setup
		s.ID, s.Address = p.ID, p.Advertised.String()
		components, _ := local.Components(s.Version, f.subject, p, local.Files{Keys: "keys", Data: "etcd", Logs: "logs"}) // f.plan has seen that there is no error
		for _, c := range components {
			if c.Program == local.ProgramProxy {
				s.ProxyArgs = c.Args
			} else {
				s.Args = c.Args
			}
		}
	}
	return run
}

// commandLine repeats the run, wherever its defaults move to.
func (f *runFlags) commandLine(name string) string {
	return shell.Line(append([]string{"skewproof", "run"}, f.words(name)...)...)
}

// words are those after 'skewproof run' of the command line.
func (f *runFlags) words(name string) []string {
	words := []string{name, "--backend", f.backend, "--subject", f.subject, "--from", f.from, "--to", f.to}
	if f.backend == backendLocal {
		words = append(words, "--etcd", f.etcd)
	}
	words = append(words, "--servers", strconv.Itoa(f.servers), "--qps", strconv.FormatFloat(f.qps, 'g', -1, 64),
		"--seed", strconv.FormatUint(f.seed, 10))
	words = append(words, f.binaryWords()...)
	if f.onlyReads {
		words = append(words, "--only-reads")
	}
	if f.strict {
		words = append(words, "--strict")
	}
	return words
}

// binaryWords are the flags that name the user's own binaries, of those that the run uses: the environment may name others too.
func (f *runFlags) binaryWords() (words []string) {
	for _, ref := range f.used() {
		if path, ok := f.overrides[ref]; ok {
			words = append(words, "--binary", fmt.Sprintf("%s@%s=%s", ref.Component, ref.Version, path))
		}
	}
	return words
}
