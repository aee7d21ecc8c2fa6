package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// localBackend runs real etcd and kube-apiserver processes in a sandbox of namespaces. This process
// checks, gets binaries and judges. A copy of this program in the sandbox does the rest: see
// sandboxed.go.
type localBackend struct{}

func (localBackend) check(p *Plan) error {
	for _, version := range p.Schedule.Versions() { // not every version has every subject
		if _, err := local.APIServerArguments(version, p.Spec.Subject, local.Place{}, local.Files{}); err != nil {
			return err
		}
	}
	places := local.Places(p.servers())
	err := p.checkOwn(func(i int, s scenario.Server) ([]string, error) {
		place := places[i]
		place.Setup = s.Setup
		return local.APIServerArguments(s.Version, p.Spec.Subject, place, local.Files{})
	})
	return cmp.Or(err, p.Spec.checkBinaries())
}

func (localBackend) describe(p *Plan, run *history.Run) {
	for i, place := range local.Places(run.Servers) {
		s := &run.Servers[i]
		place.Setup, place.Flags = p.Schedule.Servers[i].Setup, p.Spec.own()
		s.ID, s.Address = place.ID, place.Advertised.String()
		s.Args, _ = local.APIServerArguments(s.Version, run.Subject, place, local.Files{Keys: "keys", Data: "etcd", Logs: "logs"}) // see check
	}
}

func (localBackend) dryRun(p *Plan, out io.Writer) error {
	run := p.describe()
	files := local.Files{Keys: "KEYS", Data: "DATA", Logs: "LOGS"}
	fmt.Fprintf(out, "\netcd\n  %s\n", strings.Join(local.EtcdArguments(files), "\n  "))
	for i, place := range local.Places(run.Servers) {
		for _, s := range starts(p.Schedule, p.Schedule.Servers[i]) {
			place.Setup, place.Flags = s.Setup, p.Spec.own()
			args, err := local.APIServerArguments(s.Version, run.Subject, place, files)
			if err != nil {
				return wrong(err)
			}
			how := s.Version
			if s.Setup != nil {
				how += ", " + s.Setup.String()
			}
			fmt.Fprintf(out, "\n%s %s, %s, on host %s (%s)\n  %s\n",
				local.Program(run.Subject, s.Setup), place.Name, how, place.Name, place.Subnet, strings.Join(args, "\n  "))
		}
	}
	if versions := p.Schedule.ControllerVersions(); len(versions) > 0 {
		fmt.Fprintf(out, "\n%s, %s, on a host of its own\n  %s\n", local.ProgramControllers, strings.Join(versions, ", "),
			strings.Join(local.ControllersArguments(files, p.Schedule.Elects()), "\n  "))
	}
	for _, s := range p.Schedule.Steps {
		if s.Action == scenario.StartTests {
			fmt.Fprintf(out, "\n%s, %s, on a host of its own\n  %s\n", local.ProgramTests, s.Version,
				strings.Join(local.TestsArguments(files, *s.Tests), "\n  "))
		}
	}
	return p.printSchedule(out)
}

func (localBackend) prepare(ctx context.Context, p *Plan) error {
	if err := p.Spec.takeEnvironment(); err != nil {
		return err
	}
	return sandbox.Check(ctx, sandbox.Command{Args: []string{CheckSandboxCommand}})
}

// carryOut runs the sandboxed half. With Spec.Keep, the history is complete before that half ends.
// If that half is killed, the history ends where it was killed.
func (localBackend) carryOut(ctx context.Context, j *job, judge func(cut error)) error {
	needs := j.needs()
	if j.want != nil && len(j.want.Kinds) > 0 {
		needs[binaries.KubeControllerManager] = needs[binaries.KubeAPIServer]
	}
	got, err := j.Spec.get(ctx, needs, j.Progress)
	if err != nil {
		j.Dir.discard()
		return err
	}
	if err := j.begin(got, append(Machine(), got.provenance...)...); err != nil {
		return err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	var code int
	ended := make(chan error, 1)
	go func() {
		defer func() { _ = writer.Close() }()
		var err error
		code, err = sandbox.Enter(ctx, sandbox.Command{
			Args: []string{SandboxedCommand, string(j.Dir)}, Stdout: j.Progress, Stderr: j.Progress, ExtraFiles: []*os.File{writer},
			Started: func(pid int) {
				_ = writer.Close() // the sandboxed half has its own copy
				if err := os.WriteFile(j.Dir.pid(), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
					fmt.Fprintf(j.Progress, "note the sandbox for 'skewproof shell': %v\n", err)
				}
			},
		})
		ended <- err
	}()
	how := make([]byte, 1)
	if n, _ := reader.Read(how); n == 1 { // at the end of file, the sandboxed half has ended, or never started
		judge(j.Dir.cutUnless(how[0] == heldComplete))
		fmt.Fprintf(j.Progress, "The cluster stays up. Enter it with 'skewproof shell %s', act on it with 'skewproof step %s', end it with Ctrl-C here.\n", j.Dir, j.Dir)
		<-ended
		return nil
	}
	switch err := <-ended; {
	case err != nil && ctx.Err() != nil:
		judge(fmt.Errorf("%w: %w", engine.ErrStopped, err))
	case err != nil:
		judge(fmt.Errorf("%w; logs are in %s", err, j.Dir.logs()))
	case code != 0 && ctx.Err() != nil:
		judge(engine.ErrStopped)
	default:
		judge(j.Dir.cutUnless(code == 0))
	}
	return nil
}
