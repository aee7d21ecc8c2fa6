package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/scenarios"
)

// The versions compared unless others are asked for: the newest two minors with the feature on by default.
const (
	defaultFrom = "v1.36.3"
	defaultTo   = "v1.37.1"
)

// runFlags are the flags of 'skewproof run'.
type runFlags struct {
	backend, subject string
	from, to, etcd   string
	servers          int
	qps              float64
	seed             uint64
	out              string
	keep, dryRun     bool
	strict           bool
	overrides        binaries.Overrides
}

func newRun() *cobra.Command {
	f := runFlags{overrides: binaries.Overrides{}}
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Carry out a scenario, judge what was recorded, and leave a report",
		Long: `Carry out a scenario on a control plane of real kube-apiservers, judge what was recorded, and leave a report.

The cluster runs in Linux namespaces of its own: no root, no Docker, no port of this machine, and nothing can leave it.
Binaries that are not in the cache are downloaded, or built from the published Go modules (4 to 5 minutes each, once).`,
		Example: `  skewproof run rolling-upgrade
  skewproof run restart-during-partition --from v1.36.3 --to v1.37.1 --out _out/restart
  skewproof run rolling-upgrade --subject reference
  skewproof run rolling-upgrade --subject none     # the negative control: it must fail
  skewproof run quiet --keep                       # look around with 'skewproof shell'`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.keep, "keep", false, "hold the cluster after the verdict, until Ctrl-C")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the steps and every server's command line, and start nothing")
	return cmd
}

// register declares the flags that every way of running a scenario has.
func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.backend, "backend", "local", "what the servers run on: local")
	flags.StringVar(&f.subject, "subject", local.SubjectBuiltin, "whose Mixed Version Proxy is tested: builtin (the kube-apiserver's own), reference (a sidecar, 'skewproof proxy', in front of each "+
		"kube-apiserver) or none (switched off, the negative control)")
	flags.StringVar(&f.from, "from", defaultFrom, "the older kube-apiserver version")
	flags.StringVar(&f.to, "to", defaultTo, "the newer kube-apiserver version; the same as --from for a cluster of one version")
	flags.StringVar(&f.etcd, "etcd", binaries.DefaultEtcd, "etcd version")
	flags.IntVar(&f.servers, "servers", 3, "number of kube-apiservers")
	flags.Float64Var(&f.qps, "qps", 240, "requests per second, over all servers")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the load's choices")
	flags.StringVar(&f.out, "out", "", "directory for history, logs and reports (default _out/NAME-SUBJECT-TIME)")
	flags.BoolVar(&f.strict, "strict", false, "let invariants beyond the KEP count as well")
	flags.Var(f.overrides, "binary", "use a binary of your own, as COMPONENT@VERSION=PATH; may be repeated")
}

func (f *runFlags) run(ctx context.Context, name string, out, progress io.Writer) error {
	scenario, plan, err := f.plan(name)
	if err != nil {
		return err
	}
	run := f.describe(scenario, plan)
	if f.dryRun {
		return dryRun(out, run, plan)
	}
	if err := f.environmentOverrides(); err != nil {
		return err
	}
	// What is cheap to find out comes before minutes of building.
	dir, err := newRunDir(f.out, name, f.subject, time.Now())
	if err != nil {
		return err
	}
	defer dir.tidy()
	if err := sandbox.Check(ctx, sandbox.Command{Args: []string{rehearseCommand}}); err != nil {
		dir.discard()
		return notRun(err)
	}
	got, err := f.binaries(ctx, plan.Versions(), progress)
	if err != nil {
		dir.discard()
		return err
	}
	run.Reproduce, run.Environment = f.commandLine(name), append(environment(), got.provenance...)
	if err := dir.writeSpec(spec{Run: run, Plan: plan, APIServers: got.apiservers, Etcd: got.etcd, Keep: f.keep}); err != nil {
		return notRun(err)
	}
	return f.enter(ctx, dir, out, progress)
}

// plan checks everything that can be checked before anything is fetched or started.
func (f *runFlags) plan(name string) (scenarios.Scenario, scenarios.Plan, error) {
	fail := func(err error) (scenarios.Scenario, scenarios.Plan, error) {
		return scenarios.Scenario{}, scenarios.Plan{}, &exitError{exitUsage, err}
	}
	scenario, err := scenarios.Find(name)
	if err != nil {
		return fail(err)
	}
	for flag, version := range map[string]string{"--from": f.from, "--to": f.to} {
		if _, err := binaries.ParseVersion(binaries.KubeAPIServer, version); err != nil {
			return fail(fmt.Errorf("%s: %w", flag, err))
		}
	}
	if _, err := binaries.ParseVersion(binaries.Etcd, f.etcd); err != nil {
		return fail(fmt.Errorf("--etcd: %w", err))
	}
	switch {
	case f.backend != "local":
		return fail(fmt.Errorf("--backend %q: this skewproof has local", f.backend))
	case !slices.Contains(local.Subjects, f.subject):
		return fail(fmt.Errorf("--subject %q: want one of %s", f.subject, strings.Join(local.Subjects, ", ")))
	case semver.Compare(f.to, f.from) < 0:
		return fail(fmt.Errorf("--to %s is older than --from %s: give the older version as --from", f.to, f.from))
	case scenario.NeedsTwoVersions && f.from == f.to:
		return fail(fmt.Errorf("--from and --to are both %s: %s is about what only some servers serve, and needs two versions", f.to, name))
	case f.servers < scenario.MinServers || f.servers > local.MaxServers:
		return fail(fmt.Errorf("--servers %d: %s needs %d to %d", f.servers, name, scenario.MinServers, local.MaxServers))
	case !(f.qps > 0 && f.qps <= 100000):
		return fail(fmt.Errorf("--qps %v: want a rate above 0 and up to 100000", f.qps))
	}
	plan := scenario.Plan(scenarios.Parameters{Servers: f.servers, From: f.from, To: f.to, Bounds: history.DefaultBounds})
	if err := plan.Validate(); err != nil {
		return fail(fmt.Errorf("scenario %s: %w", name, err))
	}
	for _, s := range plan.Servers { // a subject that a version does not have
		if _, err := local.Components(s.Version, f.subject, local.Place{}, local.Files{}); err != nil {
			return fail(err)
		}
	}
	return scenario, plan, nil
}

func (f *runFlags) describe(scenario scenarios.Scenario, plan scenarios.Plan) history.Run {
	run := history.Run{
		Scenario: scenario.Name, Sentence: scenario.Happens, Backend: f.backend, Subject: f.subject, From: f.from, To: f.to,
		Seed: f.seed, QPS: f.qps, About: slices.Clone(scenario.About), Pressure: plan.Pressure, Bounds: plan.Bounds,
	}
	for _, s := range plan.Servers {
		run.Servers = append(run.Servers, history.Server{Name: s.Name, Version: s.Version})
	}
	for i, p := range local.Places(run.Subject, run.Servers) {
		s := &run.Servers[i]
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
	words := []string{"skewproof run", name, "--backend", f.backend, "--subject", f.subject, "--from", f.from, "--to", f.to,
		"--etcd", f.etcd, "--servers", strconv.Itoa(f.servers), "--qps", strconv.FormatFloat(f.qps, 'g', -1, 64),
		"--seed", strconv.FormatUint(f.seed, 10)}
	for _, ref := range slices.SortedFunc(maps.Keys(f.overrides), func(a, b binaries.Ref) int { return strings.Compare(a.String(), b.String()) }) {
		words = append(words, "--binary", fmt.Sprintf("%s@%s=%s", ref.Component, ref.Version, f.overrides[ref]))
	}
	if f.strict {
		words = append(words, "--strict")
	}
	return strings.Join(words, " ")
}

func (f *runFlags) environmentOverrides() error {
	fromEnvironment, err := binaries.OverridesFromEnv(os.Getenv(binaries.OverrideEnv))
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("%s: %w", binaries.OverrideEnv, err)}
	}
	for ref, path := range fromEnvironment {
		if _, ok := f.overrides[ref]; !ok { // a flag is nearer to the user than the environment
			f.overrides[ref] = path
		}
	}
	return nil
}
