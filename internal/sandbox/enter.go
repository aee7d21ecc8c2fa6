// Package sandbox runs a command in its own Linux namespaces: user, network, PID, mount, UTS and
// IPC. Its processes cannot reach the machine's network and use none of its ports. When the first
// process ends, the kernel kills all others.
//
// The outer half ([Enter]) re-executes the current program. This copy calls the inner half
// ([Setup], [Host]). Neither half needs root if the kernel allows user namespaces.
//
// The first process reaps only its own children: orphans stay zombies until the run ends.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lifelineFD is the descriptor that is closed in the inner process when the outer one has ended.
const lifelineFD = 3

// Command is the command that runs inside.
type Command struct {
	// Args are the arguments of the re-executed program, without its name.
	Args []string
	// Env is appended to the environment.
	Env []string
	// Stdin, Stdout and Stderr as in os/exec. Nil means the null device.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// ExtraFiles become descriptors 4 and following of the inner process.
	ExtraFiles []*os.File
	// Started, if set, is called with the inner process's PID, as seen from outside.
	Started func(pid int)
	// Grace is the time between SIGTERM and SIGKILL for the inner process; zero means 30 s.
	Grace time.Duration
}

// Enter runs c in new namespaces and waits for it. It returns the exit code. It returns an error if
// the command could not be started (an [UnsupportedError] if the machine does not allow namespaces)
// or if its first process was killed. When ctx is cancelled, the inner process gets SIGTERM and,
// after c.Grace, SIGKILL. If this process dies, the sandbox dies too.
func Enter(ctx context.Context, c Command) (int, error) {
	code, err := enter(ctx, c, true)
	if denied(err) && os.Geteuid() == 0 {
		// Root in a container may be allowed to create all namespaces except a user namespace.
		code, err = enter(ctx, c, false)
	}
	if denied(err) {
		return 0, &UnsupportedError{Doing: "create namespaces", Err: err}
	}
	return code, err
}

func denied(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EUSERS)
}

func enter(ctx context.Context, c Command, userNamespace bool) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program's own path: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("create the lifeline pipe: %w", err)
	}
	defer func() { _ = writer.Close() }()
	defer func() { _ = reader.Close() }()

	cmd := exec.Command(self, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.ExtraFiles = append([]*os.File{reader}, c.ExtraFiles...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// The lifeline is not enough if the first process hangs.
		Pdeathsig: syscall.SIGKILL,
		// Its own process group: Ctrl-C reaches only the outer process.
		Setpgid: true,
	}
	if userNamespace {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return runPinned(ctx, cmd, c)
}

// runPinned keeps the OS thread that starts the child alive while the child runs. The kernel sends
// the parent-death signal when the *thread* that forked ends (prctl(2), PR_SET_PDEATHSIG).
func runPinned(ctx context.Context, cmd *exec.Cmd, c Command) (int, error) {
	running := make(chan error, 1)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		running <- err
		if err != nil {
			return
		}
		done <- cmd.Wait()
	}()
	if err := <-running; err != nil {
		return 0, err
	}
	if c.Started != nil {
		c.Started(cmd.Process.Pid)
	}
	select {
	case err := <-done:
		return exitCode(err)
	case <-ctx.Done():
	}
	grace := c.Grace
	if grace == 0 {
		grace = 30 * time.Second
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-done:
		return exitCode(err)
	case <-time.After(grace):
	}
	killed := cmd.Process.Kill() == nil // otherwise it has ended meanwhile
	code, err := exitCode(<-done)
	if killed && err != nil {
		return 0, fmt.Errorf("end the sandbox: its first process did not end within %s and was killed", grace)
	}
	return code, err
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if exit.Exited() {
		return exit.ExitCode(), nil
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, err
	}
	hint := ""
	if status.Signal() == syscall.SIGKILL {
		// A process inside cannot send this signal to the first process (pid_namespaces(7)).
		hint = "; running out of memory is the usual reason: see the kernel's log, or allow the machine or container more"
	}
	return 0, fmt.Errorf("the sandbox's first process was killed by %s%s", unix.SignalName(status.Signal()), hint)
}

// UnsupportedError says why this machine allows no sandbox, and how to allow it.
type UnsupportedError struct {
	Doing string // the action that failed
	Err   error
}

// Error describes the failure and says how to allow sandboxes.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf(`%s: %v
  skewproof runs every cluster in Linux namespaces of its own, so that nothing can leave the machine. One of these helps:
  - allow unprivileged user namespaces: sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1
  - on Ubuntu 23.10 and later also: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
  - run as root
  - inside a container: start it with --privileged (or with --cap-add SYS_ADMIN,NET_ADMIN and --security-opt seccomp=unconfined,systempaths=unconfined)`,
		e.Doing, e.Err)
}

// Unwrap returns the cause.
func (e *UnsupportedError) Unwrap() error { return e.Err }
