package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
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
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return shell(cmd, runDir(args[0]), args[1:])
		},
	}
}

// shell uses nsenter(1): a program with threads, as every Go program is, may not enter a user namespace (setns(2)).
func shell(cmd *cobra.Command, dir runDir, command []string) error {
	pid, err := os.ReadFile(dir.pid())
	if errors.Is(err, fs.ErrNotExist) {
		return notRun(fmt.Errorf("%s is not running: start a run with --keep, and enter it while it lasts", dir))
	}
	if err != nil {
		return notRun(err)
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return notRun(fmt.Errorf("enter the sandbox: nsenter is not installed; it is part of the package util-linux"))
	}
	absolute, err := filepath.Abs(string(dir))
	if err != nil {
		return notRun(err)
	}
	s, err := dir.readSpec()
	if err != nil {
		return notRun(err)
	}
	files := runDir(absolute).files()
	var kubeconfigs []string
	for _, server := range s.Run.Servers {
		kubeconfigs = append(kubeconfigs, filepath.Join(files.Keys, "kubeconfig-"+server.Name))
	}
	if len(command) == 0 {
		command = []string{"/bin/sh"}
		if user := os.Getenv("SHELL"); user != "" {
			command[0] = user
		}
	}
	target := strings.TrimSpace(string(pid))
	arguments := []string{"--target", target, "--mount", "--uts", "--ipc", "--net", "--pid"}
	if ours, theirs := namespaceOf("self"), namespaceOf(target); ours != theirs {
		arguments = append(arguments, "--user", "--preserve-credentials")
	}
	inner := exec.CommandContext(cmd.Context(), nsenter, append(append(arguments, "--"), command...)...)
	inner.Stdin, inner.Stdout, inner.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	inner.Env = append(os.Environ(), "SKEWPROOF_KEYS="+files.Keys, "KUBECONFIG="+strings.Join(kubeconfigs, ":"),
		"TOXIPROXY_URL=http://127.0.0.1:8474", "PS1=[skewproof] \\$ ")
	err = inner.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &exitError{code: exit.ExitCode()}
	}
	if err != nil {
		return notRun(fmt.Errorf("enter the sandbox: %w", err))
	}
	return nil
}

// namespaceOf tells the user namespace of a process, as a name to compare.
func namespaceOf(pid string) string {
	name, err := os.Readlink("/proc/" + pid + "/ns/user")
	if err != nil {
		return "unknown"
	}
	return name
}
