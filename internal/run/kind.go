package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// kindBackend runs a kind cluster whose control-plane nodes run different versions.
type kindBackend struct {
	config kind.Config
	facts  []string
}

func (*kindBackend) check(p *Plan) error {
	if err := kind.CheckPlan(p.Schedule); err != nil {
		return err
	}
	for _, version := range p.Schedule.Versions() { // not every version has every subject
		if _, err := local.APIServerArguments(version, p.Spec.Subject, local.Place{}, local.Files{}); err != nil {
			return err
		}
	}
	for _, f := range p.Spec.own().Others() {
		if configuration := p.kubeadm(); configuration.KubeadmAPI() == "v1beta3" && len(p.Spec.own().Values(f[0])) > 1 {
			return fmt.Errorf("--kube-apiserver-flag %s=%s: kubeadm of %s takes each flag once, and this is given several times; use --backend %s",
				f[0], f[1], configuration.Oldest(), scenario.BackendLocal)
		}
	}
	return p.checkOwn(func(_ int, s scenario.Server) ([]string, error) {
		return kind.Given(p.Spec.From, p.Spec.Subject, s.Setup)
	})
}

// describe adds the arguments that servers get in addition to those of kubeadm. When the cluster
// has a name, describe also adds the addresses of the servers.
func (b *kindBackend) describe(p *Plan, run *history.Run) {
	for i := range run.Servers {
		s := &run.Servers[i]
		arguments, err := kind.APIServerArguments(p.Spec.From, p.Spec.Subject, p.Schedule.Servers[i].Setup, p.Spec.own())
		if err != nil {
			return // check has already returned this error
		}
		for _, a := range arguments {
			s.Args = append(s.Args, "--"+a.Name+"="+a.Value)
		}
	}
	if b.config.Name != "" {
		for i, place := range kind.Places(b.config.Name, run.Servers) {
			run.Servers[i].ID, run.Servers[i].Address = place.ID, place.Node
		}
	}
}

// kubeadm returns the configuration of the cluster, with placeholders for what is not known yet.
func (p *Plan) kubeadm() *kind.Configuration {
	configuration := &kind.Configuration{
		Name: kind.Prefix + "…", Image: kind.ImageName(p.Schedule.Versions()), Subject: p.Spec.Subject, Files: "OUT/kind",
		Names: []string{"GATEWAY"},
		Own:   p.Spec.own(),
	}
	for _, s := range p.Schedule.Servers {
		configuration.Nodes = append(configuration.Nodes, kind.Node{Version: s.Version, Setup: s.Setup})
	}
	return configuration
}

func (*kindBackend) dryRun(p *Plan, out io.Writer) error {
	yaml, err := p.kubeadm().YAML()
	if err != nil {
		return wrong(err)
	}
	_, err = fmt.Fprintf(out, "\nThe cluster:\n%s", yaml)
	return err
}

func (b *kindBackend) prepare(ctx context.Context, p *Plan) (err error) {
	b.config.Subject = p.Spec.Subject
	found, err := kind.Check(ctx, p.Schedule.Versions(), len(p.Schedule.Servers))
	if err != nil {
		return err
	}
	b.config.Image, b.facts = found.Image, found.Facts
	b.config.Name, err = kind.NewName()
	return err
}

// carryOut removes the cluster, whatever happens. Only a killed process leaves the cluster behind.
func (b *kindBackend) carryOut(ctx context.Context, j *job, judge func(cut error)) error {
	if err := j.begin(programs{}, append(Machine(), b.facts...)...); err != nil {
		return err
	}
	config := b.config
	config.Servers, config.Own, config.Status = j.Run.Servers, j.Spec.own(), j.status
	config.Files = kind.Files{Keys: filepath.Join(j.Dir.scratch(), "keys"), Nodes: j.Dir.File("kind"), Logs: j.Dir.logs()}
	// Root in the containers may be another user outside, and must be able to read the files of the
	// nodes.
	if err := errors.Join(os.Mkdir(config.Files.Keys, 0o700), os.Mkdir(config.Files.Nodes, 0o755)); err != nil {
		return fmt.Errorf("write to output directory: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintf(j.Progress, "skewproof: removing the cluster %s; if this is cut short, 'skewproof kind-clean' removes it\n", config.Name)
	})()
	var steps step.Executor
	made, failed := record(ctx, j.Dir, j.manifest(programs{}), engine.Options{Status: j.status, Steps: &steps},
		func(r *history.Recorder) (*kind.Cluster, error) {
			config.Recorder = r
			return kind.New(config)
		})
	if made == nil {
		return failed
	}
	defer func() {
		if left := made.Close(); left != nil {
			fmt.Fprintf(j.Progress, "%v\nSomething of the cluster %s may be left: 'skewproof kind-clean' removes it.\n", left, config.Name)
		}
	}()
	if errors.Is(failed, engine.ErrStopped) {
		judge(failed)
		return nil
	}
	made.Collect(ctx)
	if !made.Up() {
		return fmt.Errorf("%w; logs are in %s", failed, j.Dir.logs())
	}
	if failed != nil {
		fmt.Fprintf(j.Progress, "skewproof: %v\n", failed)
	}
	judge(j.Dir.cutUnless(failed == nil))
	if !j.Spec.Keep {
		return nil
	}
	h := held{steps: &steps, status: j.status, provide: func(version, _ string) error {
		if versions := j.Schedule.Versions(); !slices.Contains(versions, version) {
			return fmt.Errorf("the run was made for %s: start one whose --from or --to it is", strings.Join(versions, " and "))
		}
		return nil
	}}
	return h.hold(ctx, j.Dir, func() error {
		fmt.Fprintf(j.Progress, "The cluster stays up: kubectl --kubeconfig %s, docker exec -it %s bash. "+
			"Act on it with 'skewproof step %s', end it with Ctrl-C here.\n", config.Files.Kubeconfig(), j.Run.Servers[0].Address, j.Dir)
		return nil
	})
}
