package run

import (
	"context"
	"os"
	"syscall"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// These are the hidden commands of this program that run in a sandbox: "sandboxed DIR" calls
// [Sandboxed], and "check-sandbox SCRATCH" calls [sandbox.Try].
const (
	SandboxedCommand    = "sandboxed"
	CheckSandboxCommand = "check-sandbox"
)

// heldFD is a file descriptor. The sandboxed half writes one byte to it when the steps are done and
// the cluster is held.
const (
	heldFD            = 4
	heldComplete byte = 'c' // every step was carried out
	heldCutShort byte = 'f'
)

// Sandboxed is the half of a local run inside the sandbox. It makes the cluster, carries out the
// plan of the manifest in dir, and writes the history. With keep, it holds the cluster until ctx
// ends, and carries out the requests of 'skewproof step'.
func Sandboxed(ctx context.Context, dir Dir, c Console) error {
	syscall.CloseOnExec(heldFD) // the outer half sees the end of file when no process has it open any more
	m, err := dir.readManifest()
	if err != nil {
		return err
	}
	self, err := dir.setUp(m.Run.Servers)
	if err != nil {
		return err
	}
	var own history.OwnFlags
	if m.Run.Own != nil {
		own = *m.Run.Own
	}
	run, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	status := c.Status()
	var steps step.Executor
	made, err := record(run, dir, m, engine.Options{Status: status, Steps: &steps}, func(recorder *history.Recorder) (*local.Cluster, error) {
		return local.New(local.Config{
			Subject: m.Run.Subject, Servers: m.Run.Servers, Own: own, Programs: m.Programs, Self: self,
			Files: dir.files(), AsKubeadm: m.Want != nil, Recorder: recorder, Status: status,
			Failed: func(part string, why error) { abandon(recordLoss(recorder, part, why)) },
		})
	})
	if made == nil {
		return err
	}
	defer made.Close()
	if m.Want != nil && err == nil {
		return dir.writeWanted(run, made, m, status)
	}
	if !m.Keep || ctx.Err() != nil {
		return err
	}
	how := heldComplete
	if err != nil {
		how = heldCutShort
		status("%v", err)
	}
	h := held{steps: &steps, status: status, provide: func(version, binary string) error {
		if _, err := local.APIServerArguments(version, m.Run.Subject, local.Place{}, local.Files{}); err != nil { // not every version has every subject
			return err
		}
		return made.Provide(version, binary)
	}}
	return h.hold(ctx, dir, func() error { // then the outer half judges
		_, err := os.NewFile(heldFD, "held").Write([]byte{how})
		return err
	})
}

// setUp sets up the sandbox, in which this process is the first one, for these servers. It returns
// the path of this program, which is the extension apiserver too.
func (d Dir) setUp(servers []history.Server) (self string, err error) {
	hosts := map[string]string{}
	for _, p := range local.Places(servers) {
		hosts[p.Name] = p.Advertised.Addr().String()
	}
	if err := sandbox.Setup(sandbox.Config{Scratch: d.scratch(), Hosts: hosts}); err != nil {
		return "", err
	}
	return os.Executable()
}

// recordLoss records that a part which the servers need has ended, and returns why. The record
// excuses requests that fail because of the loss before the run ends.
func recordLoss(recorder *history.Recorder, part string, why error) error {
	if part == fault.Etcd {
		recorder.Fault(history.Fault{
			Kind: string(scenario.Kill), To: part, Blocks: true, Detail: "by nobody of this run", Start: recorder.Now(), End: history.Forever,
			Evidence: history.Evidence{Refused: 1},
		})
	}
	return why
}
