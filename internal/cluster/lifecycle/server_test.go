package lifecycle

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// incarnate makes an incarnation from a process.
func incarnate(s *Server[*program], p *program) *Incarnation[*program] {
	i := s.Begin()
	i.Process, i.started = p, true
	return i
}

func TestACrashIsOneCrash(t *testing.T) {
	s, r := serverOf(t)
	i := incarnate(s, shell(t, "echo 'lost etcd'; exit 3"))
	s.ready.Store(i)
	s.watch(i)
	s.crash(i) // must not record it twice
	if s.Ready() != nil {
		t.Error("it is still said to be ready")
	}
	if len(r.entries) != 1 || r.entries[0].State != history.StateCrashed || !strings.Contains(r.entries[0].Detail, "exit status 3") || !strings.Contains(r.entries[0].Detail, "lost etcd") {
		t.Errorf("recorded: %+v, want one crash that says how the process ended", r.entries)
	}
	if err := s.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), `stop server "a": it is not running`) {
		t.Errorf("got %v, want an error that says that it does not run", err)
	}
}

func TestACrashNamesThePanicBehindIt(t *testing.T) {
	s, r := serverOf(t)
	s.watch(incarnate(s, shell(t, "echo 'panic: nil map'; for i in 1 2 3 4 5 6 7 8 9; do echo stack; done; exit 2")))
	if len(r.entries) != 1 || !strings.Contains(r.entries[0].Detail, `"a": panic: nil map; exit status 2; last lines`) {
		t.Errorf("recorded: %+v", r.entries)
	}
}

func TestAnEndThatWasAskedForIsNoCrash(t *testing.T) {
	s, r := serverOf(t)
	i := incarnate(s, shell(t, "exit 3"))
	s.expectEnd(i)
	s.watch(i)
	if len(r.entries) != 0 {
		t.Errorf("recorded: %+v", r.entries)
	}
}

// The end of a run must not wait for servers, and must not record their end as a crash.
func TestWatchingEndsWithItsContext(t *testing.T) {
	s, r := serverOf(t)
	i := incarnate(s, shell(t, "exec sleep 1000"))
	s.setReady(i)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Context = ctx
	s.watch(i)
	if s.Ready() != i || len(r.entries) != 1 {
		t.Errorf("ready %v, recorded: %+v", s.Ready(), r.entries)
	}
}

// A late watcher of an old incarnation must not mark the new incarnation as ended.
func TestTheEndOfAnOldIncarnationLeavesTheNewOneServing(t *testing.T) {
	s, _ := serverOf(t)
	old := incarnate(s, shell(t, "exit 0"))
	<-old.Process.Done()
	now := incarnate(s, shell(t, "exec sleep 1000"))
	s.setReady(now)
	s.watch(old)
	if s.Ready() != now || !s.Runs() {
		t.Errorf("ready %v, runs %v", s.Ready(), s.Runs())
	}
}

func TestPanicsAreRecordedWithTheirIncarnation(t *testing.T) {
	s, r := serverOf(t)
	log := filepath.Join(t.TempDir(), "a.log")
	incarnate(s, ended(t, log, `echo 'http: panic serving 198.18.0.5:4000: boom'`))
	incarnate(s, ended(t, log, "echo 'all is well'"))
	s.Begin() // nothing was started
	all := Servers[*program, *Server[*program]]{s}
	all.RecordPanics()
	all.RecordPanics() // must not record it twice
	if len(r.entries) != 1 || r.entries[0].Incarnation != 1 || !strings.Contains(r.entries[0].Detail, "1 panics; the first: http: panic serving") {
		t.Errorf("recorded: %+v, want the one panic of the first", r.entries)
	}
}

func TestAServerThatNeverStartedDoesNotRun(t *testing.T) {
	s, _ := serverOf(t)
	all := Servers[*program, *Server[*program]]{s}
	if s.Runs() || s.Last() != nil || all.Serving("a") != 0 || all.Serving("nobody") != 0 {
		t.Errorf("runs %v, last %v, serving %d", s.Runs(), s.Last(), all.Serving("a"))
	}
}

// A kubelet starts a crashed server again. This is the server's next incarnation, unless the run
// has ended meanwhile.
func TestACrashedServerIsAwaitedWhereSomethingStartsItAgain(t *testing.T) {
	s, r, b := started(t, "exit 3")
	crash, run := b.program, b.program
	run.Start = func(_ context.Context, i *Incarnation[*program]) (*program, error) {
		if !i.Adopted {
			t.Error("it was started, and not awaited")
		}
		return shell(t, "exec sleep 1000"), nil
	}
	over, cancel := context.WithCancel(t.Context())
	s.Restarts = over
	first := incarnate(s, shell(t, "exit 3"))
	b.program = run
	s.watch(first)
	defer s.Discard()
	if got := r.states(); !slices.Equal(got, []history.State{history.StateCrashed, history.StateStarting, history.StateReady}) || s.Ready().Number != 2 {
		t.Errorf("recorded %v, ready: %+v", got, s.Ready())
	}
	cancel()
	b.program = crash
	s.awaitRestart(s.Last())
	if got := len(s.incarnations); got != 2 {
		t.Errorf("%d incarnations, want none after the end of the run", got)
	}
}

// The next plan on a kept cluster has a history of its own, in which incarnations count from 1.
func TestIncarnationsCanCountFromOneAgain(t *testing.T) {
	s, _ := serverOf(t)
	incarnate(s, shell(t, "true"))
	incarnate(s, shell(t, "true"))
	Servers[*program, *Server[*program]]{s}.ForgetIncarnations()
	if s.Last() != nil || s.Runs() {
		t.Errorf("it still has the incarnation %+v", s.Last())
	}
	if i := s.Begin(); i.Number != 1 {
		t.Errorf("the next incarnation is %d, want 1", i.Number)
	}
}
