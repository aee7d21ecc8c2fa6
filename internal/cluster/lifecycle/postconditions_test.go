package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// The test makes every call in every state of a server. A call either fails and changes nothing, or
// leaves the server in the state of its name: running or not, ready or not, and with the matching
// records. Only a crash is recorded as a crash.
func TestEveryCallInEveryState(t *testing.T) {
	const (
		never   = "never started"
		running = "running"
	)
	type server struct {
		*Server[*program]
		all Servers[*program, *Server[*program]]
	}
	ctx := t.Context()
	bring := map[string]func(t *testing.T, s server) error{
		never: func(*testing.T, server) error { return nil },
		running: func(t *testing.T, s server) error {
			if err := s.all.StartServer(ctx, "a", ""); err != nil {
				return err
			}
			awaitUp(t, s.Last().Process) // then it has set its trap
			return nil
		},
		"paused":  func(_ *testing.T, s server) error { return s.all.PauseServer(ctx, "a") },
		"stopped": func(_ *testing.T, s server) error { return s.Stop(ctx) },
		"killed":  func(_ *testing.T, s server) error { return s.Kill(ctx) },
		"crashed": func(t *testing.T, s server) error {
			if err := s.Last().Process.cmd.Process.Signal(syscall.SIGKILL); err != nil {
				return err
			}
			s.tasks.Wait() // wait until the watcher has recorded it
			return nil
		},
	}
	calls := map[string]func(ctx context.Context, s server) error{
		"start":   func(ctx context.Context, s server) error { return s.Start(ctx, "v1.38.0") },
		"stop":    func(ctx context.Context, s server) error { return s.Stop(ctx) },
		"kill":    func(ctx context.Context, s server) error { return s.all.KillServer(ctx, "a") },
		"replace": func(ctx context.Context, s server) error { return s.Replace(ctx, "v1.38.0") },
		"pause":   func(ctx context.Context, s server) error { return s.all.PauseServer(ctx, "a") },
		"resume":  func(ctx context.Context, s server) error { return s.all.ResumeServer(ctx, "a") },
	}
	// after is the state of a server after a call that succeeds.
	type after struct {
		runs    bool
		version string
		states  []history.State
	}
	down := func(states ...history.State) *after { return &after{false, "v1.37.1", states} }
	up := func(version string, states ...history.State) *after { return &after{true, version, states} }
	starts := []history.State{history.StateStarting, history.StateReady}
	stops := []history.State{history.StateStopping, history.StateStopped}
	want := map[string]map[string]*after{
		running: {
			"stop": down(stops...), "kill": down(history.StateKilled), "replace": up("v1.38.0", slices.Concat(stops, starts)...),
			"pause": up("v1.37.1", history.StatePaused), "resume": up("v1.37.1", history.StateResumed),
		},
		"paused": { // a paused server cannot end gracefully
			"kill": down(history.StateKilled), "pause": up("v1.37.1", history.StatePaused), "resume": up("v1.37.1", history.StateResumed),
		},
		never: {"start": up("v1.38.0", starts...)}, "stopped": {"start": up("v1.38.0", starts...)},
		"killed": {"start": up("v1.38.0", starts...)}, "crashed": {"start": up("v1.38.0", starts...)},
	}
	for state, reach := range bring {
		for call, do := range calls {
			if state == "paused" && (call == "stop" || call == "replace") {
				continue // TestAStopThatIsInterruptedKillsNothing tests these calls
			}
			t.Run(state+", "+call, func(t *testing.T) {
				t.Parallel()
				plain, r, _ := started(t, traps("exit 0"))
				over, end := context.WithCancel(context.Background())
				defer end()
				plain.Context = over
				s := server{plain, Servers[*program, *Server[*program]]{plain}}
				if state != never && state != running {
					if err := bring[running](t, s); err != nil {
						t.Fatal(err)
					}
				}
				if err := reach(t, s); err != nil {
					t.Fatal(err)
				}
				before, first, serving := len(r.states()), s.Last(), s.all.Serving("a")
				err := do(t.Context(), s)
				w := want[state][call]
				states := r.states()[before:]
				if w == nil {
					if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s server %q", call, "a")) {
						t.Errorf("error %v, want one that names the call and the server", err)
					}
					if len(states) > 0 || s.Last() != first || s.all.Serving("a") != serving {
						t.Errorf("a call that failed recorded %v; serving %d, before it %d", states, s.all.Serving("a"), serving)
					}
				} else {
					s.check(t, err, w.runs, w.version, call == "start" || call == "replace", first)
					if !slices.Equal(states, w.states) {
						t.Errorf("recorded %v, want %v", states, w.states)
					}
				}
				// A watcher must not record a requested end as a crash.
				s.Discard()
				s.tasks.Wait()
				crashes := 0
				for _, state := range r.states() {
					if state == history.StateCrashed {
						crashes++
					}
				}
				if want := map[bool]int{true: 1}[state == "crashed"]; crashes != want {
					t.Errorf("%d crashes are recorded, want %d", crashes, want)
				}
			})
		}
	}
}

// check checks the state of a server after a call that succeeded.
func (s *Server[P]) check(t *testing.T, err error, runs bool, version string, begins bool, first *Incarnation[P]) {
	t.Helper()
	if err != nil {
		t.Fatalf("error %v", err)
	}
	now := s.Last()
	if (now != first) != begins {
		t.Errorf("a new incarnation: %t, want %t", now != first, begins)
	}
	if s.Runs() != runs || (s.Ready() == now) != runs {
		t.Errorf("runs: %t, ready: %t; want both %t", s.Runs(), s.Ready() == now, runs)
	}
	if hasEnded(now.Process) == runs {
		t.Errorf("the process has ended: %t", !runs)
	}
	if s.Version != version || now.Version != version {
		t.Errorf("version %s, incarnation of %s; want %s", s.Version, now.Version, version)
	}
}
