package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// output is a buffer that a process writes and a test reads.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// underWay is a run that continues while a test looks at it.
type underWay struct {
	out   *output
	dir   string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // valid after ended is closed
}

// begin starts a quiet run and returns when the line has been seen. If the run ends before that,
// the test fails at once.
func begin(t *testing.T, line string, flags ...string) *underWay {
	t.Helper()
	return beginBy(t, nil, line, flags...)
}

// beginBy is like begin, but starts skewproof by another command, which gets skewproof's command
// line and executes it.
func beginBy(t *testing.T, by []string, line string, flags ...string) *underWay {
	t.Helper()
	return beginScenario(t, "quiet", by, line, flags...)
}

func beginScenario(t *testing.T, name string, by []string, line string, flags ...string) *underWay {
	t.Helper()
	needsCluster(t)
	u := &underWay{out: &output{}, dir: filepath.Join(t.TempDir(), "run"), ended: make(chan struct{})}
	u.cmd = command(t, nil, append([]string{"run", name, "--out", u.dir}, flags...)...)
	if len(by) > 0 {
		needsTools(t, by[0])
		u.cmd.Path, _ = exec.LookPath(by[0])
		u.cmd.Args = append(slices.Clone(by), u.cmd.Args...)
	}
	u.cmd.Stdout, u.cmd.Stderr = u.out, u.out
	u.cmd.WaitDelay = time.Minute // then the run is killed, because a failed test must not leave a cluster behind
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		u.err = u.cmd.Wait()
		close(u.ended)
	}()
	t.Cleanup(func() { <-u.ended }) // by then the test's context is cancelled, which ends the run
	eventually(t, fmt.Sprintf("the output contains %q", line), 3*time.Minute, func() bool {
		select {
		case <-u.ended:
			t.Fatalf("skewproof ended before it said %q: %v; output:\n%s", line, u.err, u.out)
		default:
		}
		return strings.Contains(u.out.String(), line)
	})
	return u
}

// end sends the run a signal, waits until it has ended, and returns its exit code. The code is -1
// if the signal itself ended the process.
func (u *underWay) end(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := u.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("send %s: %v; output:\n%s", signal, err, u.out)
	}
	select {
	case <-u.ended:
	case <-time.After(3 * time.Minute):
		t.Fatalf("skewproof has not ended 3 minutes after %s; output:\n%s", signal, u.out)
	}
	return exitCode(t, u.err)
}

// process is one process of the machine, as /proc describes it.
type process struct {
	pid  string
	args []string
}

// role is the role of the process in a run. "run" and "sandboxed" are the two halves of skewproof.
// Every other process has the name of its program as its role.
func (p process) role() string {
	program := filepath.Base(p.args[0])
	if program == filepath.Base(skewproof) && len(p.args) > 1 {
		return p.args[1]
	}
	return program
}

// processesOf lists, by role, the processes whose command line names the directory of a run. Both
// halves of skewproof get this directory, and etcd and kube-apiservers get files in it.
func processesOf(t *testing.T, dir string) map[string][]process {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]process{}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(line, []byte(dir)) {
			continue // the process has ended meanwhile, or belongs to another user
		}
		p := process{pid: filepath.Base(filepath.Dir(f)), args: strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")}
		found[p.role()] = append(found[p.role()], p)
	}
	return found
}

// census counts the processes of each role.
func census(processes map[string][]process) string {
	var roles []string
	for role, all := range processes {
		roles = append(roles, strconv.Itoa(len(all))+" "+role)
	}
	slices.Sort(roles)
	return strings.Join(roles, ", ")
}

// consistsOf waits until the run has exactly these processes. For a moment there may be more,
// because a program that is about to start still has the command line of its parent.
func (u *underWay) consistsOf(t *testing.T, want string) map[string][]process {
	t.Helper()
	var found map[string][]process
	defer func() {
		if t.Failed() {
			t.Logf("the run has %s; output:\n%s", census(found), u.out)
		}
	}()
	eventually(t, "the run has "+want, 20*time.Second, func() bool {
		found = processesOf(t, u.dir)
		return census(found) == want
	})
	return found
}

// wholeRun is the census of a run with three servers.
const wholeRun = "1 etcd, 1 run, 1 sandboxed, 3 kube-apiserver"

// nothingIsLeft waits until the run has no process left.
func nothingIsLeft(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "no process of the run is left", time.Minute, func() bool { return len(processesOf(t, dir)) == 0 })
}
