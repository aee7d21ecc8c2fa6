package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/run"
)

// waitToBeReleased plays a run that says when it begins and ends when it is released. It exits with
// 4, or with 1 if more than two runs are active.
func waitToBeReleased(dir string) int {
	underWay := dir + ".begun"
	if err := os.WriteFile(underWay, nil, 0o600); err != nil {
		return 1
	}
	others, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*.begun"))
	if err != nil || len(others) > 2 {
		fmt.Fprintf(os.Stderr, "skewproof: under way are %v, error %v\n", others, err)
		return 1
	}
	if _, err := os.ReadFile(dir + ".release"); err != nil { // reads from a pipe, which blocks until another process writes to it
		return 1
	}
	if err := os.Remove(underWay); err != nil {
		return 1
	}
	return 4
}

// carriedOut are active runs of this test binary.
type carriedOut struct {
	dirs    []string
	results chan Finished // in order; closed when the loop is over
	stop    context.CancelFunc
}

// begin starts n runs with the behaviour what. It leaves the loop after the first leaveAfter
// results, or never if leaveAfter is 0.
func begin(t *testing.T, what string, parallel, n, leaveAfter int) *carriedOut {
	t.Helper()
	t.Setenv(actVariable, what)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir() // cleaned up last, because ending runs still write there
	ctx, cancel := context.WithCancel(t.Context())
	c := &carriedOut{results: make(chan Finished, n), stop: cancel}
	var tasks []task
	for i := range n {
		dir := filepath.Join(base, strconv.Itoa(i))
		if err := syscall.Mkfifo(dir+".release", 0o600); err != nil {
			t.Fatal(err)
		}
		tasks, c.dirs = append(tasks, task{run.Spec{Scenario: "quiet", Out: dir}, time.Hour}), append(c.dirs, dir)
	}
	go func() {
		defer close(c.results)
		for i, f := range carryOutAll(ctx, self, parallel, tasks) {
			if c.results <- f; i+1 == leaveAfter {
				break
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		for range c.results { // until all processes are gone
		}
	})
	return c
}

// release lets a run that has begun end.
func (c *carriedOut) release(t *testing.T, i int) {
	t.Helper()
	if err := os.WriteFile(c.dirs[i]+".release", nil, 0o600); err != nil { // blocks until the run reads
		t.Fatal(err)
	}
}

// released takes the next result, which must be that of a released run.
func (c *carriedOut) released(t *testing.T) {
	t.Helper()
	if f := <-c.results; f.Code != codeUsage || !f.Begun || f.Took <= 0 {
		t.Errorf("%+v; want it to have been released", f)
	}
}

// appears waits for a file.
func appears(t *testing.T, file string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
		select {
		case <-t.Context().Done():
			t.Fatalf("%s never came", file)
		case <-tick.C:
		}
	}
}

// absent checks that runs have not begun.
func absent(t *testing.T, dirs []string) {
	t.Helper()
	for _, dir := range dirs {
		if _, err := os.Stat(dir + ".log"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s has begun before its turn, error %v", dir, err)
		}
	}
}

func TestRunsKeepTheirOrder(t *testing.T) {
	c := begin(t, "waits to be released", 1, 3, 0)
	for i, dir := range c.dirs {
		appears(t, dir+".begun")
		absent(t, c.dirs[i+1:])
		c.release(t, i)
		c.released(t)
	}
}

// Whichever of two runs ends first, the next run in the order begins. The runs themselves check
// that there are never more than two. Results keep the order.
func TestSoManyRunsAtATime(t *testing.T) {
	c := begin(t, "waits to be released", 2, 5, 0)
	appears(t, c.dirs[0]+".begun")
	for i := 1; i < len(c.dirs); i++ { // run 0 is active all the time
		appears(t, c.dirs[i]+".begun")
		absent(t, c.dirs[i+1:])
		c.release(t, i)
	}
	if len(c.results) > 0 {
		t.Errorf("a result was reported before that of the first run: %+v", <-c.results)
	}
	c.release(t, 0)
	for range c.dirs {
		c.released(t)
	}
}

func TestAnInterruptedSuiteLeavesNoProcess(t *testing.T) {
	c := begin(t, "hangs", 2, 3, 0)
	for i := range 2 {
		appears(t, c.dirs[i]+".begun")
	}
	c.stop()
	for i := range 2 {
		if f := <-c.results; f.Problem != interrupted || !f.Begun {
			t.Errorf("run %d: %+v; want it interrupted", i, f)
		}
		ended(t, c.dirs[i])
	}
	if f := <-c.results; f.Begun || f.Problem == "" {
		t.Errorf("the run that was waiting: %+v", f)
	}
	absent(t, c.dirs[2:])
}

// A caller that leaves the loop ends the active runs.
func TestALoopThatIsLeftEndsTheRest(t *testing.T) {
	c := begin(t, "hangs unless released", 2, 3, 1)
	for i := range 2 {
		appears(t, c.dirs[i]+".begun")
	}
	c.release(t, 0)
	c.released(t)
	for f := range c.results {
		t.Errorf("another result: %+v", f)
	}
	ended(t, c.dirs[1]) // the third run may have begun in place of the first
}

// ended checks that a run has cleaned up and that its process is gone.
func ended(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir + ".tidied"); err != nil {
		t.Errorf("%s was not given the time to tidy up: %v", dir, err)
	}
	written, err := os.ReadFile(dir + ".begun")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(written))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("%s: its process %d is still there, error %v", dir, pid, err)
	}
}

// A task without a directory ends at once, and keeps its position.
func TestATaskOfNothing(t *testing.T) {
	for i, f := range carryOutAll(t.Context(), "/nosuch", 2, make([]task, 3)) {
		if !f.Begun || f.Problem != "" {
			t.Errorf("task %d: %+v", i, f)
		}
	}
}
