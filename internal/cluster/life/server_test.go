package life

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// diary keeps what is recorded.
type diary struct {
	mu      sync.Mutex
	entries []history.Lifecycle
}

func (d *diary) Lifecycle(l history.Lifecycle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, l)
}
func (d *diary) Now() history.Time { return time.Second }

func serverOf(t *testing.T) (*Server[*program], *diary) {
	d := &diary{}
	return &Server[*program]{Name: "a", Version: "v1.37.1", Recorder: d, Status: t.Logf}, d
}

// incarnate makes an incarnation of processes.
func incarnate(s *Server[*program], processes ...*program) *Incarnation[*program] {
	i := s.Begin()
	for _, p := range processes {
		i.Add(p)
	}
	return i
}

func TestACrashOfEitherProcessIsOneCrash(t *testing.T) {
	for name, scripts := range map[string][2]string{
		"the kube-apiserver": {"echo 'lost etcd'; exit 3", "exec sleep 1000"},
		"the sidecar":        {"exec sleep 1000", "echo 'lost etcd'; exit 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := serverOf(t)
			i := incarnate(s, shell(t, scripts[0]), shell(t, scripts[1]))
			s.serving.Store(1)
			if !s.Watch(t.Context(), i) {
				t.Error("it is not said to be a crash")
			}
			s.Crash(i, i.First()) // which must not tell of it twice
			if s.Serving() != 0 {
				t.Error("it is still said to serve")
			}
			if len(d.entries) != 1 || d.entries[0].State != history.StateCrashed || !strings.Contains(d.entries[0].Detail, "exit status 3") || !strings.Contains(d.entries[0].Detail, "lost etcd") {
				t.Errorf("recorded: %+v, want one crash that tells of the process that ended", d.entries)
			}
			if err := s.LockRunning("stop"); err == nil || !strings.Contains(err.Error(), `stop server "a": it is not running`) {
				t.Errorf("got %v, want an error that says that it does not run", err)
			}
		})
	}
}

func TestACrashNamesThePanicBehindIt(t *testing.T) {
	s, d := serverOf(t)
	s.Watch(t.Context(), incarnate(s, shell(t, "echo 'panic: nil map'; for i in 1 2 3 4 5 6 7 8 9; do echo stack; done; exit 2")))
	if len(d.entries) != 1 || !strings.Contains(d.entries[0].Detail, `"a": panic: nil map; exit status 2; last lines`) {
		t.Errorf("recorded: %+v", d.entries)
	}
}

func TestAnEndThatWasAskedForIsNoCrash(t *testing.T) {
	s, d := serverOf(t)
	i := incarnate(s, shell(t, "exit 3"), shell(t, "exit 3"))
	s.ExpectEnd()
	if s.Watch(t.Context(), i) || len(d.entries) != 0 {
		t.Errorf("recorded: %+v", d.entries)
	}
}

// The end of a run must not wait for servers, nor take their end for a crash.
func TestWatchingEndsWithItsContext(t *testing.T) {
	s, d := serverOf(t)
	i := incarnate(s, shell(t, "exec sleep 1000"))
	s.Ready(i)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Watch(ctx, i) || s.Serving() != 1 || len(d.entries) != 1 {
		t.Errorf("serving %d, recorded: %+v", s.Serving(), d.entries)
	}
}

// A late watcher of an old incarnation must not take the new one for gone.
func TestTheEndOfAnOldIncarnationLeavesTheNewOneServing(t *testing.T) {
	s, _ := serverOf(t)
	old := incarnate(s, shell(t, "exit 0"))
	<-old.Over()
	s.Ready(incarnate(s, shell(t, "exec sleep 1000")))
	s.Watch(t.Context(), old)
	if s.Serving() != 2 || !s.Runs() {
		t.Errorf("serving %d, runs %v", s.Serving(), s.Runs())
	}
}

func TestPanicsOfEveryProcessAreRecordedWithTheirIncarnation(t *testing.T) {
	s, d := serverOf(t)
	dir := t.TempDir()
	sidecar := filepath.Join(dir, "sidecar.log")
	incarnate(s, ended(t, filepath.Join(dir, "a.log"), "echo 'all is well'"), ended(t, sidecar, `echo 'http: panic serving 198.18.0.5:4000: boom'`))
	incarnate(s, ended(t, sidecar, "echo 'all is well'"))
	s.RecordPanics()
	s.RecordPanics() // which must not tell of it twice
	if len(d.entries) != 1 || d.entries[0].Incarnation != 1 || !strings.Contains(d.entries[0].Detail, "1 panics; the first: http: panic serving") {
		t.Errorf("recorded: %+v, want the one panic of the first sidecar", d.entries)
	}
}

func TestAServerThatNeverStartedDoesNotRun(t *testing.T) {
	s, _ := serverOf(t)
	if s.Runs() || s.Last() != nil || s.Serving() != 0 {
		t.Errorf("runs %v, last %v, serving %d", s.Runs(), s.Last(), s.Serving())
	}
}
