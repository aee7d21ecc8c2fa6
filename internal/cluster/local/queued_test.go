package local

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// More threads than processors, all of which want to run, wait for one another.
func TestQueuedGrowsWhereProcessorsAreWanted(t *testing.T) {
	if none := queued(-1); none != 0 {
		t.Errorf("a process that there is not has waited %s", none)
	}
	if _, err := os.Stat("/proc/self/schedstat"); err != nil { // a kernel that does not count
		if got := queued(os.Getpid()); got != 0 {
			t.Errorf("%s, though this kernel does not count", got)
		}
		return
	}
	before := queued(os.Getpid())
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
	for queued(os.Getpid())-before < 50*time.Millisecond {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("%d threads on %d processors have waited %s in a minute", threads, runtime.NumCPU(), queued(os.Getpid())-before)
		}
	}
}
