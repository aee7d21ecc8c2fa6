package local

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

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

// What a cluster says of a server is the sum over its processes.
func TestQueuedIsOfTheServersProcesses(t *testing.T) {
	const busy = "while :; do :; done"
	first, second := shell(t, busy), shell(t, busy)
	s := &server{}
	c := &Cluster{servers: map[string]*server{"a": s}}
	if got := c.Queued("a") + c.Queued("nobody"); got != 0 {
		t.Errorf("%s of a server that was never ready and one that there is not", got)
	}
	s.ready.Store(&incarnation{Unit: unitOf(first, second)})
	waited := func(p *process) time.Duration { return queued("/proc", p.cmd.Process.Pid) }
	if _, err := os.Stat("/proc/self/schedstat"); err == nil {
		deadline, look := time.After(time.Minute), time.NewTicker(time.Millisecond)
		defer look.Stop()
		for waited(first) == 0 || waited(second) == 0 {
			select {
			case <-look.C:
			case <-deadline:
				t.Fatal("a busy process has not waited for a processor once in a minute")
			}
		}
	}
	for range 100 { // until nothing is counted between two looks
		before := waited(first) + waited(second)
		if got := c.Queued("a"); got == before || got == waited(first)+waited(second) {
			return
		}
	}
	t.Errorf("the server has waited %s, its processes %s and %s", c.Queued("a"), waited(first), waited(second))
}

// More threads than processors, all of which want to run, wait for one another.
func TestQueuedGrowsWhereProcessorsAreWanted(t *testing.T) {
	if none := queued("/proc", -1); none != 0 {
		t.Errorf("a process that there is not has waited %s", none)
	}
	if _, err := os.Stat("/proc/self/schedstat"); err != nil { // a kernel that does not count
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
