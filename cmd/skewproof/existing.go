package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/existing"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/scenarios/conformance"
)

// backendExisting is a control plane that runs already and is somebody else's.
const backendExisting = scenario.BackendExisting

// gentleQPS is the rate for servers that have other work to do.
const gentleQPS = 60

// existingFlags say where the servers are.
type existingFlags struct {
	kubeconfig               string
	contexts, directContexts []string
	// possible is whether the command has that backend.
	possible bool
}

func (f *existingFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "for --backend existing: the file that names the servers, a context for each")
	flags.StringSliceVar(&f.contexts, "contexts", nil, "for --backend existing: the contexts to test (default: all)")
	flags.StringSliceVar(&f.directContexts, "direct-contexts", nil,
		"for --backend existing: contexts, in the same order, that lead to the kube-apiservers behind the proxy, where it is a process of its own")
}

// unused refuses servers that were named where others would be started.
func (f *existingFlags) unused() error {
	var flag string
	switch {
	case f.kubeconfig != "":
		flag = "kubeconfig"
	case len(f.contexts) > 0:
		flag = "contexts"
	case len(f.directContexts) > 0:
		flag = "direct-contexts"
	default:
		return nil
	}
	return fmt.Errorf("--%s is for --backend %s; give that too", flag, backendExisting)
}

// backends are those that the command has.
func (f *existingFlags) backends() string {
	if f.possible {
		return strings.Join([]string{backendLocal, backendKind, backendSim}, ", ") + " or " + backendExisting
	}
	return backendLocal + ", " + backendKind + " or " + backendSim
}

// unreadable tells a kubeconfig that cannot be read, as any file of a user, from one that names the servers wrongly.
func unreadable(err error) error {
	if errors.Is(err, existing.ErrUnreadable) {
		return notRun(err)
	}
	return &exitError{exitUsage, err}
}

// runExisting carries out a scenario that only reads, on servers that are somebody else's, and judges what can be seen from outside.
func (f *runFlags) runExisting(ctx context.Context, name string, out, progress io.Writer) error {
	chosen, ways, err := f.checkExisting(name)
	if err != nil {
		return unreadable(err)
	}
	versions, err := existing.Versions(ctx, ways)
	if err != nil {
		return notRun(err)
	}
	if err := f.takeVersions(chosen, versions); err != nil {
		return &exitError{exitUsage, err}
	}
	plan := chosen.Plan(scenario.Parameters{Servers: len(ways), From: f.from, To: f.to, Bounds: history.DefaultBounds, ReadOnly: true})
	plan.Servers = nil
	for _, way := range ways { // whichever of them is newer: a plan that only reads names none
		plan.Servers = append(plan.Servers, scenario.Server{Name: way.Name, Version: versions[way.Name]})
	}
	run, unseen := f.describeExisting(chosen, plan, ways)
	if len(run.About) == 0 {
		return usage("%s is about %s, which cannot be judged from outside", name, strings.Join(chosen.About, ", "))
	}
	dir, err := newRunDir(f.out, name, f.subject, time.Now())
	if err != nil {
		return err
	}
	defer dir.tidy()
	defer func() { _ = os.Remove(dir.files().Logs) }() // there are none
	if err := dir.writeSpec(spec{Run: run, Plan: plan}); err != nil {
		return notRun(err)
	}
	status := statusTo(progress)
	status("reading only, %g requests a second; not judged, since it cannot be seen from outside: %s", f.qps, strings.Join(unseen, ", "))
	err = recordExisting(ctx, dir, run, plan, ways, versions, status)
	if ctx.Err() != nil {
		return notRun(errors.New("interrupted before there was a verdict"))
	}
	verdict := judgeRun(dir, f.strict, out)
	if err == nil {
		return verdict
	}
	return endedEarly(verdict, err)
}

// recordExisting runs the plan and writes the history.
func recordExisting(ctx context.Context, dir runDir, run history.Run, plan scenario.Plan, ways []existing.Endpoint, versions map[string]string,
	status func(string, ...any),
) (err error) {
	file, err := dir.createHistory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	run.StartedAt = time.Now()
	recorder := history.NewRecorder(file, run, nil)
	cluster, err := existing.New(ways, versions, recorder, status)
	if err != nil {
		return errors.Join(err, recorder.Close(err))
	}
	defer cluster.Close()
	return engine.Run(ctx, plan, cluster, recorder, engine.Options{Seed: run.Seed, QPS: run.QPS, Status: status, ReadOnly: true})
}

// checkExisting checks what can be checked before any server is dialled.
func (f *runFlags) checkExisting(name string) (scenario.Scenario, []existing.Endpoint, error) {
	fail := func(err error) (scenario.Scenario, []existing.Endpoint, error) { return scenario.Scenario{}, nil, err }
	chosen, err := scenarios.Find(name)
	if err != nil {
		return fail(err)
	}
	for _, flag := range []string{"subject", "from", "to", "servers", "etcd", "binary", "keep", "dry-run"} {
		if f.given != nil && f.given(flag) {
			return fail(fmt.Errorf("--%s means nothing with --backend %s: the servers are what they are, and somebody else's", flag, backendExisting))
		}
	}
	if f.existing.kubeconfig == "" {
		return fail(fmt.Errorf("--backend %s needs --kubeconfig: the file that names the servers, a context for each", backendExisting))
	}
	if err := f.checkQPS(); err != nil {
		return fail(err)
	}
	ways, err := existing.Endpoints(f.existing.kubeconfig, f.existing.contexts, f.existing.directContexts)
	if err != nil {
		return fail(err)
	}
	if len(ways) < chosen.MinServers {
		return fail(fmt.Errorf("%d servers: %s needs %d", len(ways), name, chosen.MinServers))
	}
	if !chosen.Limits.Allows(backendExisting) {
		return fail(fmt.Errorf("--backend %s: %s runs on %s only, %s", backendExisting, name, strings.Join(chosen.Limits.Backends, ", "), chosen.Limits.Reason))
	}
	plan := chosen.Plan(scenario.Parameters{Servers: len(ways), From: conformance.DefaultFrom, To: conformance.DefaultTo, Bounds: history.DefaultBounds, ReadOnly: true})
	if err := plan.OnlyReads(); err != nil {
		return fail(fmt.Errorf("%s is not for servers that are somebody else's: %w", name, err))
	}
	return chosen, ways, nil
}

// takeVersions makes the run one from the oldest to the newest of the servers' versions.
func (f *runFlags) takeVersions(chosen scenario.Scenario, versions map[string]string) error {
	f.subject = conformance.External
	if f.given == nil || !f.given("qps") {
		f.qps = gentleQPS
	}
	f.from, f.to = "", ""
	for _, v := range versions {
		if f.from == "" || semver.Compare(v, f.from) < 0 {
			f.from = v
		}
		if f.to == "" || semver.Compare(v, f.to) > 0 {
			f.to = v
		}
	}
	if chosen.NeedsTwoVersions && f.from == f.to {
		return fmt.Errorf("all servers are %s: %s is about what only some servers serve, and needs two versions", f.to, chosen.Name)
	}
	return nil
}

// describeExisting describes the run, and names the invariants that nothing can be said about from outside.
func (f *runFlags) describeExisting(chosen scenario.Scenario, plan scenario.Plan, ways []existing.Endpoint) (run history.Run, unseen []string) {
	run = history.Run{
		Scenario: chosen.Name, Sentence: chosen.Happens, Backend: f.backend, Subject: f.subject, From: f.from, To: f.to,
		Seed: f.seed, QPS: f.qps, Pressure: plan.Pressure, Bounds: plan.Bounds, External: true,
	}
	for _, i := range invariant.All() {
		if !i.Outside {
			unseen = append(unseen, i.Name)
		}
	}
	for _, about := range chosen.About {
		if !slices.Contains(unseen, about) {
			run.About = append(run.About, about)
		}
	}
	var names []string
	for i, s := range plan.Servers {
		run.Servers = append(run.Servers, history.Server{Name: s.Name, Version: s.Version, Address: strings.TrimPrefix(ways[i].FrontDoor.Host, "https://")})
		names = append(names, s.Name)
	}
	run.Environment = append(environment(),
		"servers that ran already; requests that read, no audit logs", "not judged from outside: "+strings.Join(unseen, ", "))
	words := []string{
		"skewproof", "run", chosen.Name, "--backend", f.backend, "--kubeconfig", f.existing.kubeconfig, "--contexts", strings.Join(names, ","),
		"--qps", strconv.FormatFloat(f.qps, 'g', -1, 64), "--seed", strconv.FormatUint(f.seed, 10),
	}
	if len(f.existing.directContexts) > 0 {
		words = slices.Concat(words, []string{"--direct-contexts", strings.Join(f.existing.directContexts, ",")})
	}
	if f.strict {
		words = append(words, "--strict")
	}
	run.Reproduce = shell.Line(words...)
	return run, unseen
}
