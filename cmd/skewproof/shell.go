package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func newShell() *cobra.Command {
	return &cobra.Command{
		Use:   "shell DIR [-- COMMAND…]",
		Short: "Enter the sandbox of a run that was started with --keep",
		Long: `Enter the sandbox of a run that was started with --keep. A kubeconfig for each server lies in $SKEWPROOF_KEYS
(kubeconfig-a, kubeconfig-b, …); KUBECONFIG lists them all, one context a server. Toxiproxy's own client finds the
links at $TOXIPROXY_URL.`,
		Example: `  skewproof shell _out/quiet-builtin-20261121-101500
  skewproof shell DIR -- kubectl --context b get --raw /apis
  skewproof shell DIR -- toxiproxy-cli list`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			absolute, err := filepath.Abs(args[0])
			if err != nil {
				return notRun(err)
			}
			return notRun(enterShell(runDir(absolute), args[1:]))
		},
	}
}

// enterShell becomes nsenter(1): a program with threads, as every Go program is, may not enter a user namespace (setns(2)).
func enterShell(dir runDir, command []string) error {
	if err := noFile(string(dir)); err != nil {
		return err
	}
	pid, err := dir.sandbox()
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return errors.New("enter the sandbox: nsenter is not installed; it is part of the package util-linux")
	}
	s, err := dir.readSpec()
	if err != nil {
		return err
	}
	keys := dir.files().Keys
	var kubeconfigs []string
	for _, server := range s.Run.Servers {
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

// sandbox is the PID of the first process of the run's sandbox, as seen from here. A PID may be stale, and another process may
// have it by now: only one that runs this very directory, in a network of its own, is believed.
func (d runDir) sandbox() (string, error) {
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
	if err != nil || !strings.HasSuffix(string(line), insideCommand+"\x00"+string(d)+"\x00") || namespaceOf("self", "net") == namespaceOf(pid, "net") {
		return "", gone
	}
	return pid, nil
}

// namespaceOf tells a namespace of a process, as a name to compare.
func namespaceOf(pid, kind string) string {
	name, err := os.Readlink("/proc/" + pid + "/ns/" + kind)
	if err != nil {
		return "unknown"
	}
	return name
}
