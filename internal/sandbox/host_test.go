package sandbox

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// In /proc the main thread represents the process. If a host used the main thread, 'skewproof
// shell' would enter that host.
func TestHostsNeverTakeTheMainThread(t *testing.T) {
	var all sync.WaitGroup
	stay := make(chan struct{})
	const threads = 64 // all are held at once, so that the scheduler must use the main thread too
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
