package binaries

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runGroup runs a command in a process group of its own, which is killed when its context ends: go does not pass a signal
// on to the compilers that it has started. It is killed outright, since the Go caches are made to survive that, and the
// temporary files are in a directory that is removed.
func runGroup(cmd *exec.Cmd) error {
	// The parent-death signal is for the kill -9 of this process, and comes when the *thread* that started the child
	// ends (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.Run()
}
