package lifecycle

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// traps is a script that does something at SIGTERM.
func traps(what string) string {
	return "trap '" + what + "' TERM; echo up; while :; do sleep 0.01; done"
}

// trapping starts a process that does something at SIGTERM. It returns when the process has set
// this trap.
func trapping(t *testing.T, what string) *program {
	t.Helper()
	p := shell(t, traps(what))
	awaitUp(t, p)
	return p
}

func awaitUp(t *testing.T, p *program) {
	t.Helper()
	err := AwaitReady(t.Context(), p, time.Minute, func(context.Context) error {
		if p.log.Tail(1) != "up" {
			return errors.New("not up")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A process that ends with a failure when it is asked to stop has crashed.
func TestStopTellsWhetherTheProcessEndedWell(t *testing.T) {
	for code, want := range map[string]history.State{"0": history.StateStopped, "7": history.StateCrashed} {
		s, r := serverOf(t)
		i := incarnate(s, trapping(t, "exit "+code))
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.states(); !i.Ended() || !slices.Equal(got, []history.State{history.StateStopping, want}) {
			t.Errorf("exit status %s: ended %v, recorded %v", code, i.Ended(), got)
		}
		if detail := r.entries[1].Detail; want == history.StateCrashed && !strings.Contains(detail, "exit status 7") {
			t.Errorf("the crash is recorded as %q", detail)
		}
	}
}

// told is a backend that notes, whenever a process is asked to end, what is said about the server.
type told struct {
	signals
	all      Servers[*program, *Server[*program]]
	draining []history.Lifecycle
}

func (b *told) Terminate(ctx context.Context, p *program, next string) error {
	b.draining = append(b.draining, *b.all.Draining("a"))
	return b.signals.Terminate(ctx, p, next)
}

// A server that is asked to stop may serve until its process has ended.
func TestAServerDrainsWhileItStops(t *testing.T) {
	s, r := serverOf(t)
	b := &told{all: Servers[*program, *Server[*program]]{s}}
	s.Backend = b
	incarnate(s, trapping(t, "exit 0"))
	if b.all.Draining("a") != nil {
		t.Error("it drains before it is asked to stop")
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stopping := r.entries[0]; !slices.Equal(b.draining, []history.Lifecycle{stopping}) || b.all.Draining("a") != nil {
		t.Errorf("it drained as %+v, then as %+v; want %+v until its end", b.draining, b.all.Draining("a"), stopping)
	}
}

// A kubelet kills a container that does not end within its grace period.
func TestAProcessThatDoesNotStopInTimeIsKilled(t *testing.T) {
	p := trapping(t, "echo no")
	s, r := serverOf(t)
	incarnate(s, p)
	s.StopTimeout = 100 * time.Millisecond
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.states(); !slices.Equal(got, []history.State{history.StateStopping, history.StateKilled}) ||
		r.entries[1].Detail != "it was asked to stop, and was still running after 100ms" {
		t.Errorf("recorded %+v", r.entries)
	}
	select {
	case <-p.Done():
	default:
		t.Error("the process lives")
	}
}

// The delays of a server's setup come on top of the limit.
func TestAServerMayDrainForAsLongAsItsSetupSays(t *testing.T) {
	p := trapping(t, "sleep 0.3; exit 0")
	s, r := serverOf(t)
	incarnate(s, p)
	s.StopTimeout = 100 * time.Millisecond
	s.setup.Store(&scenario.Setup{ShutdownDelay: time.Minute, WatchTermination: time.Minute})
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.states(); !slices.Equal(got, []history.State{history.StateStopping, history.StateStopped}) {
		t.Errorf("recorded %+v", r.entries)
	}
}

// Only the limit of the stop leads to a kill, and not the end of the run.
func TestAStopThatIsInterruptedKillsNothing(t *testing.T) {
	p := trapping(t, "echo no")
	s, r := serverOf(t)
	incarnate(s, p)
	s.StopTimeout = time.Minute
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if got := r.states(); !slices.Equal(got, []history.State{history.StateStopping}) {
		t.Errorf("recorded %+v", r.entries)
	}
}

func TestKillEndsAPausedServer(t *testing.T) {
	s, r := serverOf(t)
	i := incarnate(s, shell(t, "exec sleep 1000"))
	all := Servers[*program, *Server[*program]]{s}
	if err := all.PauseServer(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := all.KillServer(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got := r.states(); !i.Ended() || !slices.Equal(got, []history.State{history.StatePaused, history.StateKilled}) {
		t.Errorf("ended %t, recorded %v", i.Ended(), got)
	}
	if err := all.ResumeServer(t.Context(), "a"); err == nil || err.Error() != `resume server "a": it is not running` {
		t.Errorf("a server that was killed was resumed: %v", err)
	}
	if err := all.KillServer(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), `no server "b": the run has a`) {
		t.Errorf("got %v, want an error that names the servers", err)
	}
}

// started returns a server whose program is a script, which counts as ready at once.
func started(t *testing.T, script string) (*Server[*program], *recording, *signals) {
	t.Helper()
	ready := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(ready.Close)
	s, r := serverOf(t)
	s.Client = ready.Client()
	b := &signals{program: Program[*program]{
		Start: func(context.Context, *Incarnation[*program]) (*program, error) { return shell(t, script), nil },
		URL:   ready.URL,
	}}
	s.Backend = b
	return s, r, b
}

func TestReplaceStopsAndStartsAnotherVersionInTheSamePlace(t *testing.T) {
	s, r, _ := started(t, traps("exit 0"))
	if err := s.Start(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "it is running already") {
		t.Errorf("a server that runs was started: %v", err)
	}
	awaitUp(t, s.Last().Process) // then it has set its trap
	if err := s.Replace(t.Context(), "v1.38.0"); err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	want := []history.State{history.StateStarting, history.StateReady, history.StateStopping, history.StateStopped, history.StateStarting, history.StateReady}
	if got := r.states(); !slices.Equal(got, want) || s.Ready().Number != 2 || s.Ready().Version != "v1.38.0" {
		t.Errorf("recorded %v, want %v; ready: %+v", got, want, s.Ready())
	}
	s.Configure(&scenario.Setup{Proxy: scenario.Off})
	if err := s.Replace(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "setup of its own") {
		t.Errorf("a server that is to get a setup was replaced: %v", err)
	}
}

// A server may refuse a setup that cannot work. If it ends at its start with a setup that should
// work, it has crashed.
func TestOnlyAWrongSetupIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		setup   *scenario.Setup
		refused bool
		states  []history.State
	}{
		"none":             {nil, false, []history.State{history.StateStarting}},
		"new certificates": {&scenario.Setup{Serving: scenario.CertificateRotated}, false, []history.State{history.StateStarting}},
		"another's authority": {&scenario.Setup{PeerCA: scenario.TrustStranger}, true,
			[]history.State{history.StateStarting, history.StateStopping, history.StateStopped}},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, b := started(t, "echo 'error: no'; exit 1")
			b.program.URL = "http://127.0.0.1:0"
			s.Configure(c.setup)
			err := s.Start(t.Context(), "")
			var refused *scenario.RefusedError
			if err == nil || errors.As(err, &refused) != c.refused {
				t.Errorf("it ends with %v", err)
			}
			if got := r.states(); !slices.Equal(got, c.states) {
				t.Errorf("recorded: %v, want %v", got, c.states)
			}
		})
	}
}

// If a version cannot start beside the others, this is a finding.
func TestAFailedStartIsACrashOnceAllServersWereUp(t *testing.T) {
	s, r, b := started(t, "echo 'error: no'; exit 1")
	b.program.URL = "http://127.0.0.1:0"
	s.MarkUp()
	if err := s.Start(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "error: no") {
		t.Errorf("got %v, want an error with the last lines of the log", err)
	}
	if got := r.states(); !slices.Equal(got, []history.State{history.StateStarting, history.StateCrashed}) {
		t.Errorf("recorded %v", got)
	}
}
