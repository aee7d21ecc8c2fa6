package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The sandboxed halves that people never call.
const (
	insideCommand   = "inside"
	rehearseCommand = "rehearse"
)

// keptFD is where the sandboxed half says, by one byte, that the steps are over and the cluster stays up.
const (
	keptFD            = 4
	keptComplete byte = 'c' // every step was carried out
	keptCutShort byte = 'f'
)

// newRehearse finds out whether this machine lets a run have its sandbox.
func newRehearse() *cobra.Command {
	return &cobra.Command{
		Use:    rehearseCommand + " SCRATCH",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE:   func(_ *cobra.Command, args []string) error { return notRun(sandbox.Try(args[0])) },
	}
}

// newInside is the sandboxed half of 'skewproof run'. People never call it.
func newInside() *cobra.Command {
	return &cobra.Command{
		Use:    insideCommand + " DIR",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := inside(cmd.Context(), runDir(args[0]), statusTo(cmd.ErrOrStderr())); err != nil {
				return notRun(err)
			}
			return nil
		},
	}
}

func inside(ctx context.Context, dir runDir, status func(string, ...any)) (err error) {
	syscall.CloseOnExec(keptFD) // as long as any process has it open, the outer half sees no end
	s, err := dir.readSpec()
	if err != nil {
		return err
	}
	hosts := map[string]string{}
	for _, p := range local.Places(s.Run.Subject, s.Run.Servers) {
		hosts[p.Name] = p.Advertised.Addr().String()
	}
	if err := sandbox.Setup(sandbox.Config{Scratch: dir.scratch(), Hosts: hosts}); err != nil {
		return err
	}
	file, err := dir.createHistory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	s.Run.StartedAt = time.Now()
	recorder := history.NewRecorder(file, s.Run, nil)
	self, err := os.Executable() // the sidecars are this program too
	if err != nil {
		return errors.Join(err, recorder.Close(err))
	}
	run, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	cluster, err := local.New(local.Config{
		Subject: s.Run.Subject, Servers: s.Run.Servers, APIServers: s.APIServers, Etcd: s.Etcd, Proxy: self,
		Files: dir.files(), Recorder: recorder, Status: status, Failed: func(part string, why error) { abandon(lose(recorder, part, why)) },
	})
	if err != nil {
		return errors.Join(err, recorder.Close(err))
	}
	defer cluster.Close()
	err = engine.Run(run, s.Plan, cluster, recorder, engine.Options{Seed: s.Run.Seed, QPS: s.Run.QPS, Status: status})
	if s.Keep && ctx.Err() == nil {
		said := keptComplete
		if err != nil {
			said = keptCutShort
			status("%v", err)
		}
		if _, keptErr := os.NewFile(keptFD, "kept").Write([]byte{said}); keptErr != nil {
			return errors.Join(err, keptErr)
		}
		<-ctx.Done()
		return nil // all has been said
	}
	return err
}

// lose records that something has ended which the servers need, and returns why the run is over. What they failed at in the moment before it is over
// has an excuse then.
func lose(recorder *history.Recorder, part string, why error) error {
	if part == fault.Etcd {
		recorder.Fault(history.Fault{
			Kind: string(scenario.Kill), To: part, Blocks: true, Detail: "by nobody of this run", Start: recorder.Now(), End: history.Forever,
			Evidence: history.Evidence{Refused: 1},
		})
	}
	return why
}

// statusTo prints one line per call, with the time since the first one.
func statusTo(w interface{ Write([]byte) (int, error) }) func(string, ...any) {
	start := time.Now()
	return func(format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}
