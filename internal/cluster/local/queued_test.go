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
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skipf("this kernel does not count: %v", err)
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
	for deadline := time.Now().Add(time.Minute); queued(os.Getpid())-before < 50*time.Millisecond; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d threads on %d processors have waited %s in a minute", threads, runtime.NumCPU(), queued(os.Getpid())-before)
		}
	}
	if none := queued(-1); none != 0 {
		t.Errorf("a process that there is not has waited %s", none)
	}
}
