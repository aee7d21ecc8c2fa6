package sandbox

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The main thread stands for the process in /proc: a host on it would lead 'skewproof shell' to
// that host.
func TestHostsNeverTakeTheMainThread(t *testing.T) {
	var all sync.WaitGroup
	stay := make(chan struct{})
	const threads = 64 // all held at once, so that the scheduler has to offer the main thread too
	all.Add(threads)
	taken := make(chan int, threads)
	for range threads {
		onOwnThread(func() {
			defer all.Done()
			taken <- unix.Gettid()
			<-stay
		})
	}
	seen := map[int]bool{}
	for range threads {
		tid := <-taken
		if tid == unix.Getpid() {
			t.Error("the main thread was taken")
		}
		if seen[tid] {
			t.Errorf("thread %d was taken twice", tid)
		}
		seen[tid] = true
	}
	close(stay)
	all.Wait()
}
