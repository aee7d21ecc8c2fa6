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

// waitToBeReleased plays a run that says when it begins and ends when it is told to, with the exit code 4; 1 if more than two are under way.
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
	if _, err := os.ReadFile(dir + ".release"); err != nil { // a pipe: until somebody writes to it
		return 1
	}
	if err := os.Remove(underWay); err != nil {
		return 1
	}
	return 4
}

// queued adds runs of what is acted to a queue, and returns them and their directories.
func queued(t *testing.T, what string, atOnce, n int) (q *Queue, runs []*Queued, dirs []string) {
	t.Helper()
	t.Setenv(actVariable, what)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir() // cleaned up last: runs that are being ended still write there
	q = NewQueue(t.Context(), self, atOnce)
	t.Cleanup(q.Close)
	for i := range n {
		dir := filepath.Join(base, strconv.Itoa(i))
		if err := syscall.Mkfifo(dir+".release", 0o600); err != nil {
			t.Fatal(err)
		}
		runs, dirs = append(runs, q.Add(time.Hour, run.Spec{Scenario: "quiet", Out: dir})), append(dirs, dir)
	}
	return q, runs, dirs
}

// released lets a run that has begun end, and is what it came to.
func released(t *testing.T, r *Queued, dir string) {
	t.Helper()
	if err := os.WriteFile(dir+".release", nil, 0o600); err != nil { // waits for the reader
		t.Fatal(err)
	}
	if f, begun := r.Wait(t.Context()); f.Code != codeUsage || !begun || f.Took <= 0 {
		t.Errorf("%s: %+v, begun %v; want it to have been released", dir, f, begun)
	}
}

// appears waits for a file, and fails if the run is over before.
func appears(t *testing.T, r *Queued, file string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
		select {
		case <-r.over:
			t.Fatalf("the run ended without %s: %+v, begun %v", file, r.finished, r.begun)
		case <-t.Context().Done():
			t.Fatalf("%s never came", file)
		case <-tick.C:
		}
	}
}

// absent checks that a run has not begun.
func absent(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir + ".log"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s has begun before its turn, error %v", dir, err)
	}
}

func TestAQueueKeepsItsOrder(t *testing.T) {
	_, runs, dirs := queued(t, "waits to be released", 1, 3)
	for i := range runs {
		appears(t, runs[i], dirs[i]+".begun")
		for _, later := range dirs[i+1:] {
			absent(t, later)
		}
		released(t, runs[i], dirs[i])
	}
}

// Whichever of two ends first, the next in the order begins; the runs themselves see that there are never more.
func TestAQueueCarriesOutSoManyAtATime(t *testing.T) {
	_, runs, dirs := queued(t, "waits to be released", 2, 5)
	appears(t, runs[0], dirs[0]+".begun")
	for i := 1; i < len(runs); i++ { // run 0 is under way all the time
		appears(t, runs[i], dirs[i]+".begun")
		for _, later := range dirs[i+1:] {
			absent(t, later)
		}
		released(t, runs[i], dirs[i])
	}
	released(t, runs[0], dirs[0])
}

func TestAClosedQueueLeavesNoProcess(t *testing.T) {
	q, runs, dirs := queued(t, "hangs", 2, 3)
	for i := range 2 {
		appears(t, runs[i], dirs[i]+".begun")
	}
	q.Close()
	for i := range 2 {
		if f, begun := runs[i].Wait(t.Context()); f.Problem != interrupted || !begun {
			t.Errorf("run %d: %+v, begun %v; want it interrupted", i, f, begun)
		}
		if _, err := os.Stat(dirs[i] + ".tidied"); err != nil {
			t.Errorf("run %d was not given the time to tidy up: %v", i, err)
		}
		written, err := os.ReadFile(dirs[i] + ".begun")
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(string(written))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("run %d: its process %d is still there, error %v", i, pid, err)
		}
	}
	if f, begun := runs[2].Wait(t.Context()); begun || f.Problem == "" {
		t.Errorf("the run that was waiting: %+v, begun %v", f, begun)
	}
	absent(t, dirs[2])
	q.Close()
}

// Whoever no longer waits for a run ends it, and no other one.
func TestARunThatNobodyWaitsForIsEnded(t *testing.T) {
	_, runs, dirs := queued(t, "hangs", 2, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 2 {
		appears(t, runs[i], dirs[i]+".begun")
	}
	cancel()
	if f, begun := runs[0].Wait(ctx); f.Problem != interrupted || !begun {
		t.Errorf("%+v, begun %v; want it interrupted", f, begun)
	}
	appears(t, runs[2], dirs[2]+".begun") // in its place
	select {
	case <-runs[1].over:
		t.Errorf("another one was ended too: %+v", runs[1].finished)
	default:
	}
}
