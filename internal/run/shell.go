package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/skewproof/skewproof/internal/scenario"
)

// enterHere is a script for /bin/sh that runs a command in a directory. It is needed because a
// process that enters a mount namespace loses its working directory (setns(2)). So nsenter(1) would
// run its command in the root directory.
const enterHere = `cd -- "$1" || exit 3; shift; exec "$@"`

// Shell enters the sandbox of a run that is kept. It runs a command there, or the user's shell, in
// the present directory. It returns only if it fails: this process becomes nsenter(1), because a
// program with threads, such as every Go program, may not enter a user namespace (setns(2)).
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
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("enter the sandbox: find the present directory: %w", err)
	}
	if len(command) == 0 {
		command = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	words := []string{nsenter, "--target", pid, "--mount", "--uts", "--ipc", "--net", "--pid"}
	if namespaceOf("self", "user") != namespaceOf(pid, "user") {
		words = append(words, "--user", "--preserve-credentials")
	}
	words = append(words, "--", "/bin/sh", "-c", enterHere, "sh", here)
	files := d.files()
	environment := append(os.Environ(), "SKEWPROOF_KEYS="+files.Keys, "KUBECONFIG="+files.Kubeconfig(),
		"TOXIPROXY_URL=http://127.0.0.1:8474", "PS1=[skewproof] \\$ ")
	err = unix.Exec(nsenter, append(words, command...), environment)
	return fmt.Errorf("enter the sandbox: start %s: %w", nsenter, err)
}

// sandbox returns the PID of the first process of the run's sandbox, as seen from here. The PID in
// the file may be stale and belong to another process by now. So sandbox accepts only a process
// that runs this very directory, in its own network namespace.
func (d Dir) sandbox() (string, error) {
	gone := fmt.Errorf("%s is not running: start a run with --keep, and enter it while it lasts", d)
	content, err := os.ReadFile(d.pid())
	if errors.Is(err, fs.ErrNotExist) {
		if m, err := d.readManifest(); err == nil && m.Run.Backend != scenario.BackendLocal {
			return "", fmt.Errorf("%s is a run on the backend %s, which has no sandbox to enter: use the kubeconfig that the run names", d,
				m.Run.Backend)
		}
		return "", gone
	}
	if err != nil {
		return "", err
	}
	pid := strings.TrimSpace(string(content))
	line, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil || !strings.HasSuffix(string(line), SandboxedCommand+"\x00"+string(d)+"\x00") ||
		namespaceOf("self", "net") == namespaceOf(pid, "net") {
		return "", gone
	}
	return pid, nil
}

// namespaceOf names a namespace of a process, for comparison with that of another process.
func namespaceOf(pid, kind string) string {
	name, err := os.Readlink("/proc/" + pid + "/ns/" + kind)
	if err != nil {
		return "unknown"
	}
	return name
}
