package local

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

func TestPanicsAreFoundInTheLogOfTheirIncarnation(t *testing.T) {
	first := shell(t, `echo 'I1121 fine'; echo 'E1121 runtime.go:142] "Observed a panic" panic="nil map"'; echo 'I1121 fine again'`)
	<-first.done
	second, err := startProcess("second", "/bin/sh", []string{"-c", "echo 'fatal error: concurrent map writes'; echo 'panic: boom'"}, first.logPath, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	<-second.done
	if got := Panics(first.logPath, first.logFrom, second.logFrom); len(got) != 1 || !strings.Contains(got[0], "nil map") {
		t.Errorf("found %q in the first, want the one line about a panic", got)
	}
	if got := Panics(second.logPath, second.logFrom, -1); len(got) != 2 {
		t.Errorf("found %q in the second, want both lines", got)
	}
}

func TestAPanicInAStructuredLogIsCutDownToWhatPeopleRead(t *testing.T) {
	p := shell(t, `printf '%s\n' 'level=WARN msg="http2: panic serving 198.18.0.5:60814: nil map\ngoroutine 4481 [running]:\nnet/http..."'; printf 'panic: %01000d\n' 7`)
	<-p.done
	got := Panics(p.logPath, p.logFrom, -1)
	if len(got) != 2 || !strings.HasSuffix(got[0], "nil map") || len(got[1]) > 310 {
		t.Errorf("found %q", got)
	}
}

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

func serverOf(d *diary, incarnations ...*incarnation) *server {
	c := &Cluster{config: Config{Recorder: d, Status: func(string, ...any) {}}, servers: map[string]*server{}}
	s := &server{cluster: c, place: place(SubjectReference, 0, "a"), incarnations: incarnations}
	c.servers["a"], c.places = s, []Place{s.place}
	return s
}

func TestACrashOfEitherProcessIsOneCrashAndTheEndOfBoth(t *testing.T) {
	for name, scripts := range map[string][2]string{
		"the kube-apiserver": {"echo 'lost etcd'; exit 3", "exec sleep 1000"},
		"the sidecar":        {"exec sleep 1000", "echo 'lost etcd'; exit 3"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &diary{}
			i := &incarnation{unit: unitOf(shell(t, scripts[0]), shell(t, scripts[1])), number: 1, version: "v1.37.1"}
			s := serverOf(d, i)
			s.serving.Store(1)
			s.watch(i)
			for _, p := range i.processes {
				<-p.done
			}
			if s.serving.Load() != 0 {
				t.Error("it is still said to serve")
			}
			if len(d.entries) != 1 || d.entries[0].State != history.StateCrashed || !strings.Contains(d.entries[0].Detail, "exit status 3") || !strings.Contains(d.entries[0].Detail, "lost etcd") {
				t.Errorf("recorded: %+v, want one crash that tells of the process that ended", d.entries)
			}
			if _, err := s.cluster.running("a", "stop"); err == nil {
				t.Error("it is said to run")
			}
		})
	}
}

func TestACrashNamesThePanicBehindIt(t *testing.T) {
	d := &diary{}
	i := &incarnation{unit: unitOf(shell(t, "echo 'panic: nil map'; for i in 1 2 3 4 5 6 7 8 9; do echo stack; done; exit 2")), number: 1}
	serverOf(d, i).watch(i)
	if len(d.entries) != 1 || !strings.Contains(d.entries[0].Detail, `"a": panic: nil map; exit status 2; last lines`) {
		t.Errorf("recorded: %+v", d.entries)
	}
}

func TestAnEndThatWasAskedForIsNoCrash(t *testing.T) {
	d := &diary{}
	i := &incarnation{unit: unitOf(shell(t, "exit 3"), shell(t, "exit 3")), number: 1}
	s := serverOf(d, i)
	s.expectEnd()
	s.watch(i)
	if len(d.entries) != 0 {
		t.Errorf("recorded: %+v", d.entries)
	}
}

func TestPanicsOfEveryProcessAreRecordedWithTheirIncarnation(t *testing.T) {
	apiserver := shell(t, "echo 'all is well'")
	sidecar := shell(t, `echo 'http: panic serving 198.18.0.5:4000: boom'`)
	<-sidecar.done
	again, err := startProcess("sidecar", "/bin/sh", []string{"-c", "echo 'all is well'"}, sidecar.logPath, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	<-again.done
	<-apiserver.done
	d := &diary{}
	s := serverOf(d, &incarnation{unit: unitOf(apiserver, sidecar), number: 1}, &incarnation{unit: unitOf(again), number: 2})
	s.cluster.RecordPanics()
	s.cluster.RecordPanics() // which must not tell of it twice
	if len(d.entries) != 1 || d.entries[0].Incarnation != 1 || !strings.Contains(d.entries[0].Detail, "1 panics; the first: http: panic serving") {
		t.Errorf("recorded: %+v, want the one panic of the first sidecar", d.entries)
	}
}
