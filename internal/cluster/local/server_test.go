package local

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/history"
)

func shell(t *testing.T, script string) *process {
	t.Helper()
	p, err := startProcess("kube-apiserver \"a\"", "/bin/sh", []string{"-c", script}, filepath.Join(t.TempDir(), "a.log"), (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.signal(9)
		<-p.done
	})
	return p
}

func TestAnEndingTellsTheExitStatusAndTheLog(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":                 "exit status 0; its log is empty",
		"echo 'no etcd'; exit 3": "exit status 3; last lines of its log:\nno etcd",
		"kill -KILL $$":          "signal: killed; its log is empty",
	} {
		p := shell(t, script)
		<-p.done
		if got := lifecycle.Ending(p); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
		if err := p.signal(9); err != nil {
			t.Errorf("a signal for a process that has ended: %v", err)
		}
	}
}

func TestQueuedIsTheTimeOfWaitingOfAllThreads(t *testing.T) {
	proc := t.TempDir()
	for thread, line := range map[string]string{"7": "1000 20 3\n", "8": "5000 400 60\n", "9": "unreadable\n"} {
		dir := filepath.Join(proc, "7", "task", thread)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "schedstat"), []byte(line), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if got := queued(proc, 7); got != 420 {
		t.Errorf("%d ns, want 20 and 400", got)
	}
}

// unrecorded is a recorder that records nothing.
type unrecorded struct{}

func (unrecorded) Lifecycle(history.Lifecycle)         {}
func (unrecorded) Configuration(history.Configuration) {}
func (unrecorded) Now() history.Time                   { return 0 }

// running is a backend whose process runs already.
type running struct {
	*server
	program lifecycle.Program[*process]
}

func (r running) Program(string) (lifecycle.Program[*process], error) { return r.program, nil }

// ready makes a ready server of a cluster from a process.
func ready(t *testing.T, c *Cluster, p *process) *server {
	t.Helper()
	answers := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(answers.Close)
	c.lifecycle = lifecycle.Config{
		Recorder: unrecorded{}, Status: t.Logf, Client: answers.Client(), ReadyTimeout: time.Minute, StopTimeout: time.Minute, Context: t.Context(),
	}
	s := c.newServer(place(0, "a"), "v1.37.1", nil)
	c.Servers = append(c.Servers, s)
	if got := c.Queued("a"); got != 0 {
		t.Errorf("%s of a server that was never ready", got)
	}
	s.Backend = running{s, lifecycle.Program[*process]{
		Start: func(context.Context, *incarnation) (*process, error) { return p, nil }, URL: answers.URL,
	}}
	if err := c.StartServer(t.Context(), "a", ""); err != nil {
		t.Fatal(err)
	}
	return s
}

// The waiting time of a server is that of its process.
func TestQueuedIsOfTheServersProcess(t *testing.T) {
	busy := shell(t, "while :; do :; done")
	shell(t, "while :; do :; done") // another one, so that they wait for each other
	c := &Cluster{}
	if got := c.Queued("nobody"); got != 0 {
		t.Errorf("%s of a server that there is not", got)
	}
	s := ready(t, c, busy)
	if s.Ready() == nil {
		t.Fatal("the server is not ready")
	}
	waited := func() time.Duration { return queued("/proc", busy.cmd.Process.Pid) }
	if _, err := os.Stat("/proc/self/schedstat"); err == nil {
		deadline, look := time.After(time.Minute), time.NewTicker(time.Millisecond)
		defer look.Stop()
		for waited() == 0 {
			select {
			case <-look.C:
			case <-deadline:
				t.Fatal("a busy process has not waited for a processor once in a minute")
			}
		}
	}
	for range 100 { // until no thread waits between two reads
		before := waited()
		if got := c.Queued("a"); got == before || got == waited() {
			return
		}
	}
	t.Errorf("the server has waited %s, its process %s", c.Queued("a"), waited())
}

// If there are more runnable threads than processors, threads wait for each other.
func TestQueuedGrowsWhereProcessorsAreWanted(t *testing.T) {
	if none := queued("/proc", -1); none != 0 {
		t.Errorf("a process that there is not has waited %s", none)
	}
	if _, err := os.Stat("/proc/self/schedstat"); err != nil { // this kernel does not count
		if got := queued("/proc", os.Getpid()); got != 0 {
			t.Errorf("%s, though this kernel does not count", got)
		}
		return
	}
	before := queued("/proc", os.Getpid())
	threads := 2*runtime.NumCPU() + 2
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	var enough atomic.Bool
	defer enough.Store(true)
	for range threads {
		go func() {
			for !enough.Load() {
			}
		}()
	}
	deadline, look := time.After(time.Minute), time.NewTicker(time.Millisecond)
	defer look.Stop()
	for queued("/proc", os.Getpid())-before < 50*time.Millisecond {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("%d threads on %d processors have waited %s in a minute", threads, runtime.NumCPU(), queued("/proc", os.Getpid())-before)
		}
	}
}

// If a server reported another version than the expected one, every verdict would be worthless. A
// build of changed source counts as its minor version, as with --binary.
func TestServersOfAnotherVersionAreRefused(t *testing.T) {
	c := &Cluster{}
	s := ready(t, c, shell(t, "exec sleep 1000"))
	for says, refused := range map[string]bool{
		"v1.37.1": false, "v1.37.1+k3s1": false, "v1.37.1-dirty": false, "v1.37.2-rc.0.12+8f3c2d1": false,
		"v1.37.2": true, "v1.36.3": true, "v1.36.3-dirty": true, "v0.0.0-master+$Format:%H$": true, "": true,
	} {
		answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": says})
		}))
		s.Client = answers.Client()
		if err := s.checkVersion(t.Context(), answers.URL, &incarnation{Version: "v1.37.1"}); (err != nil) != refused {
			t.Errorf("%q: %v", says, err)
		}
		answers.Close()
	}
}
