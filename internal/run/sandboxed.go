package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The hidden commands of this program that are run in a sandbox: "sandboxed DIR" calls [Sandboxed],
// and "check-sandbox SCRATCH" calls [sandbox.Try].
const (
	SandboxedCommand    = "sandboxed"
	CheckSandboxCommand = "check-sandbox"
)

// heldFD is where the sandboxed half says, by one byte, that the steps are over and the cluster is
// held.
const (
	heldFD            = 4
	heldComplete byte = 'c' // every step was carried out
	heldCutShort byte = 'f'
)

// Sandboxed is the half of a local run that is inside the sandbox: it makes the cluster, carries
// out the plan of the manifest in dir, and writes the history. With keep, it holds the cluster
// until ctx ends.
func Sandboxed(ctx context.Context, dir Dir, c Console) error {
	syscall.CloseOnExec(heldFD) // the outer half sees the end of file when no process has it open any more
	m, err := dir.readManifest()
	if err != nil {
		return err
	}
	hosts := map[string]string{}
	for _, p := range local.Places(m.Run.Subject, m.Run.Servers) {
		hosts[p.Name] = p.Advertised.Addr().String()
	}
	if err := sandbox.Setup(sandbox.Config{Scratch: dir.scratch(), Hosts: hosts}); err != nil {
		return err
	}
	self, err := os.Executable() // the sidecars are this program too
	if err != nil {
		return err
	}
	run, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	status := c.status()
	made, err := record(run, dir, m, false, status, func(recorder *history.Recorder) (*local.Cluster, error) {
		return local.New(local.Config{
			Subject: m.Run.Subject, Servers: m.Run.Servers, APIServers: m.APIServers, Controllers: m.Controllers, Etcd: m.Etcd, Proxy: self,
			Files: dir.files(), Recorder: recorder, Status: status, Failed: func(part string, why error) { abandon(recordLoss(recorder, part, why)) },
		})
	})
	if made == nil {
		return err
	}
	defer made.Close()
	if !m.Keep || ctx.Err() != nil {
		return err
	}
	how := heldComplete
	if err != nil {
		how = heldCutShort
		status("%v", err)
	}
	if _, failed := os.NewFile(heldFD, "held").Write([]byte{how}); failed != nil {
		return errors.Join(err, failed)
	}
	<-ctx.Done()
	return nil // the outer half has judged
}

// recordLoss records that something has ended which the servers need, and returns why. Requests
// that fail for it before the run is over have an excuse then.
func recordLoss(recorder *history.Recorder, part string, why error) error {
	if part == fault.Etcd {
		recorder.Fault(history.Fault{
			Kind: string(scenario.Kill), To: part, Blocks: true, Detail: "by nobody of this run", Start: recorder.Now(), End: history.Forever,
			Evidence: history.Evidence{Refused: 1},
		})
	}
	return why
}

// Shell enters the sandbox of a run that is kept, and runs a command there, or the user's shell. It
// returns only if it cannot: this process becomes nsenter(1), since a program with threads, as
// every Go program is, may not enter a user namespace (setns(2)).
func (d Dir) Shell(command []string) error {
	if err := d.isDirectory(); err != nil {
		return err
	}
	pid, err := d.sandbox()
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return errors.New("enter the sandbox: nsenter is not installed; it is part of the package util-linux")
	}
	m, err := d.readManifest()
	if err != nil {
		return err
	}
	keys := d.files().Keys
	var kubeconfigs []string
	for _, server := range m.Run.Servers {
		kubeconfigs = append(kubeconfigs, filepath.Join(keys, "kubeconfig-"+server.Name))
	}
	if len(command) == 0 {
		command = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	words := []string{nsenter, "--target", pid, "--mount", "--uts", "--ipc", "--net", "--pid"}
	if namespaceOf("self", "user") != namespaceOf(pid, "user") {
		words = append(words, "--user", "--preserve-credentials")
	}
	environment := append(os.Environ(), "SKEWPROOF_KEYS="+keys, "KUBECONFIG="+strings.Join(kubeconfigs, ":"),
		"TOXIPROXY_URL=http://127.0.0.1:8474", "PS1=[skewproof] \\$ ")
	err = unix.Exec(nsenter, append(append(words, "--"), command...), environment)
	return fmt.Errorf("enter the sandbox: start %s: %w", nsenter, err)
}

// sandbox returns the PID of the first process of the run's sandbox, as seen from here. The PID in
// the file may be stale, and belong to another process by now: only one that runs this very
// directory, in a network of its own, is believed.
func (d Dir) sandbox() (string, error) {
	gone := fmt.Errorf("%s is not running: start a run with --keep, and enter it while it lasts", d)
	content, err := os.ReadFile(d.pid())
	if errors.Is(err, fs.ErrNotExist) {
		return "", gone
	}
	if err != nil {
		return "", err
	}
	pid := strings.TrimSpace(string(content))
	line, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil || !strings.HasSuffix(string(line), SandboxedCommand+"\x00"+string(d)+"\x00") || namespaceOf("self", "net") == namespaceOf(pid, "net") {
		return "", gone
	}
	return pid, nil
}

// namespaceOf names a namespace of a process, to be compared with that of another.
func namespaceOf(pid, kind string) string {
	name, err := os.Readlink("/proc/" + pid + "/ns/" + kind)
	if err != nil {
		return "unknown"
	}
	return name
}
