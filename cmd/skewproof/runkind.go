package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// backendKind is a kind cluster whose control-plane nodes run different versions.
const backendKind = scenario.BackendKind

// checkKind refuses what means nothing where everything comes out of a node image.
func (f *runFlags) checkKind(plan scenario.Plan) error {
	for _, name := range []string{"binary", "etcd"} {
		if f.given != nil && f.given(name) {
			return fmt.Errorf("--%s means nothing with --backend %s: the node image has the programs", name, backendKind)
		}
	}
	if err := kind.CheckPlan(plan); err != nil {
		return err
	}
	for _, version := range plan.Versions() { // a subject that a version does not have
		if _, err := local.APIServerArguments(version, f.subject, local.Place{}, local.Files{}); err != nil {
			return err
		}
	}
	return nil
}

// describeKind adds to the description of a run what its servers are told beside what kubeadm tells them.
func (f *runFlags) describeKind(run *history.Run, plan scenario.Plan) {
	for i := range run.Servers {
		s := &run.Servers[i]
		arguments, err := kind.APIServerArguments(f.from, f.subject, plan.Servers[i].Setup)
		if err != nil {
			return // checkKind has seen that there is none
		}
		for _, a := range arguments {
			s.Args = append(s.Args, "--"+a.Name+"="+a.Value)
		}
		if f.subject == scenario.SubjectReference {
			s.ProxyArgs = kind.ProxyArguments()
		}
	}
}

// dryRunKind prints what kind would be told.
func dryRunKind(out io.Writer, run history.Run, plan scenario.Plan) error {
	listSteps(out, run, plan)
	configuration := kind.Configuration{
		Name: kind.Prefix + "…", Image: kind.ImageName(plan.Versions()), Subject: run.Subject, Files: "OUT/kind", Names: []string{"GATEWAY"},
	}
	if run.Subject == scenario.SubjectReference {
		configuration.Proxy = "SKEWPROOF"
	}
	for _, s := range plan.Servers {
		configuration.Nodes = append(configuration.Nodes, kind.Node{Version: s.Version, Setup: s.Setup})
	}
	yaml, err := configuration.YAML()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	_, err = fmt.Fprintf(out, "\nThe cluster:\n%s", yaml)
	return err
}

// runKind carries out a plan on a kind cluster and judges it.
func (f *runFlags) runKind(ctx context.Context, run history.Run, plan scenario.Plan, out, progress io.Writer) error {
	var proxy string
	if f.subject == scenario.SubjectReference {
		self, err := os.Executable() // the sidecars are this program too
		if err != nil {
			return notRun(err)
		}
		proxy = self
	}
	found, err := kind.Check(ctx, plan.Versions(), len(plan.Servers), proxy)
	if err != nil {
		return notRun(err)
	}
	name, err := kind.NewName()
	if err != nil {
		return notRun(err)
	}
	dir, err := newRunDir(f.out, run.Scenario, f.subject, time.Now())
	if err != nil {
		return err
	}
	defer dir.tidy()
	for i, p := range kind.Places(name, run.Servers) {
		run.Servers[i].ID, run.Servers[i].Address = p.ID, p.Node
	}
	run.Environment = append(environment(), found.Facts...)
	if err := dir.writeSpec(spec{Run: run, Plan: plan, Keep: f.keep}); err != nil {
		return notRun(err)
	}
	return f.onKind(ctx, dir, plan, kind.Config{
		Name: name, Image: found.Image, Subject: f.subject, Servers: run.Servers, Proxy: proxy, Status: statusTo(progress),
		Files: kind.Files{Keys: filepath.Join(dir.scratch(), "keys"), Nodes: dir.file("kind"), Logs: dir.files().Logs},
	}, run, out, progress)
}

// onKind makes the cluster, carries out the plan, and removes the cluster, whatever happens: only a killed process leaves it behind.
func (f *runFlags) onKind(ctx context.Context, dir runDir, plan scenario.Plan, config kind.Config, run history.Run, out, progress io.Writer) (err error) {
	// Whoever root is in the containers has to read what the nodes see.
	if err := errors.Join(os.Mkdir(config.Files.Keys, 0o700), os.Mkdir(config.Files.Nodes, 0o755)); err != nil {
		return notRun(fmt.Errorf("write to output directory: %w", err))
	}
	file, err := dir.createHistory()
	if err != nil {
		return notRun(err)
	}
	run.StartedAt = time.Now()
	recorder := history.NewRecorder(file, run, nil)
	config.Recorder = recorder
	cluster, err := kind.New(config)
	if err != nil {
		return notRun(errors.Join(err, recorder.Close(err), file.Close()))
	}
	defer func() {
		if left := cluster.Close(); left != nil {
			fmt.Fprintf(progress, "%v\nSomething of the cluster %s may be left: 'skewproof kind-clean' removes it.\n", left, config.Name)
		}
	}()
	failed := engine.Run(ctx, plan, cluster, recorder, engine.Options{Seed: run.Seed, QPS: run.QPS, Status: config.Status})
	failed = errors.Join(failed, file.Close())
	if ctx.Err() != nil {
		return notRun(errors.New("interrupted before there was a verdict"))
	}
	cluster.Collect(ctx)
	if !cluster.Up() {
		return notRun(fmt.Errorf("%w; logs are in %s", failed, config.Files.Logs))
	}
	if failed != nil {
		fmt.Fprintf(progress, "skewproof: %v\n", failed)
	}
	if !f.keep {
		return f.judge(dir, failed == nil, out)
	}
	verdict := f.judge(dir, failed == nil, out)
	fmt.Fprintf(progress, "The cluster stays up: kubectl --kubeconfig %s, docker exec -it %s bash. End it with Ctrl-C here.\n",
		config.Files.Kubeconfig(), run.Servers[0].Address)
	<-ctx.Done()
	return verdict
}
