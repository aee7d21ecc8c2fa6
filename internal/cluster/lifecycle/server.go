// Package lifecycle starts, stops, kills, pauses, resumes and replaces apiservers, and records when
// they are ready or crash. A [Backend] starts the processes and signals them.
package lifecycle

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Recorder receives the records about servers. [history.Recorder] is one.
type Recorder interface {
	Lifecycle(history.Lifecycle)
	Configuration(history.Configuration)
	Now() history.Time
}

// Config is the configuration that the servers of a cluster share. All fields except Restarts are
// required.
type Config struct {
	Recorder Recorder
	Status   func(format string, args ...any) // one line for people
	// Client asks servers whether they are ready, past all links and faults.
	Client *http.Client
	// ReadyTimeout is the time limit until a started program is ready. StopTimeout is the time
	// limit for the end of a process, without the delays in the setup of its server.
	ReadyTimeout, StopTimeout time.Duration
	// Context ends with the cluster. Later crashes are not recorded.
	Context context.Context
	// Restarts is set if another program, such as a kubelet, restarts crashed servers. Until this
	// context ends, the run waits for a crashed server to come back.
	Restarts context.Context

	tasks sync.WaitGroup // these watch servers
	up    atomic.Bool
}

// MarkUp records that all servers were ready at the same time. After that a failed start is a
// crash, and not the failure of the run.
func (c *Config) MarkUp() { c.up.Store(true) }

// Up reports whether all servers were ready at the same time.
func (c *Config) Up() bool { return c.up.Load() }

// Wait returns when no server is watched any more. Context must have ended before.
func (c *Config) Wait() { c.tasks.Wait() }

// Backend runs the process of one server.
type Backend[P Process] interface {
	// Program returns the program of the server with that version and [Server.Setup]. It starts
	// nothing.
	Program(version string) (Program[P], error)
	// Terminate asks a process to end gracefully. next is the version that replaces it, if any.
	Terminate(ctx context.Context, p P, next string) error
	// KillProcess ends a process at once. No program starts it again.
	KillProcess(ctx context.Context, p P) error
	// Signal sends a signal to a process.
	Signal(ctx context.Context, p P, signal syscall.Signal) error
}

// Program is the program of a server.
type Program[P Process] struct {
	// Start starts the program in an incarnation. If the incarnation is adopted, Start waits for
	// the program instead.
	Start func(ctx context.Context, i *Incarnation[P]) (P, error)
	// URL is the address at which the program answers, past all links and faults. The program is
	// ready when /readyz answers 200.
	URL string
	// Args is its command line, without the name of the program, for the record; nil: unknown.
	Args []string
	// Check checks that the ready program is the right one; nil: no check.
	Check func(ctx context.Context, i *Incarnation[P]) error
}

// Server is one apiserver through all its incarnations. Its lock is held during each change of
// state.
type Server[P Process] struct {
	sync.Mutex
	*Config
	Name    string
	Version string // of the present or last incarnation; before the first, of the first
	Backend Backend[P]

	incarnations []*Incarnation[P]
	ready        atomic.Pointer[Incarnation[P]]    // the incarnation that is ready; nil if none is
	draining     atomic.Pointer[history.Lifecycle] // see Servers.Draining
	setup        atomic.Pointer[scenario.Setup]    // of the present or last incarnation
	next         *scenario.Setup                   // of the next start
}

// Incarnation is one life of a server, from the start of its process to the end.
type Incarnation[P Process] struct {
	Process  P // valid once it is started
	started  bool
	Number   int // from 1
	Version  string
	Emulates string // the minor version that it must emulate, "1.36"; empty: its own
	Reports  string // the emulated minor version that it reports at /version; empty: none, or not asked yet
	Adopted  bool   // another program has started its process: kubeadm, or a kubelet
	expected atomic.Bool
	crashed  atomic.Bool // its end has been recorded as a crash
}

// Ended reports whether the process has ended, or was not started yet.
func (i *Incarnation[P]) Ended() bool { return !i.started || hasEnded(i.Process) }

// Begin creates the next incarnation, with [Server.Version] and [Server.Setup].
func (s *Server[P]) Begin() *Incarnation[P] {
	i := &Incarnation[P]{Number: len(s.incarnations) + 1, Version: s.Version, Emulates: s.Setup().Like()}
	s.incarnations = append(s.incarnations, i)
	return i
}

// Last returns the present or last incarnation; nil before the first.
func (s *Server[P]) Last() *Incarnation[P] {
	if len(s.incarnations) == 0 {
		return nil
	}
	return s.incarnations[len(s.incarnations)-1]
}

// Runs reports whether the present incarnation is alive, ready or not.
func (s *Server[P]) Runs() bool {
	last := s.Last()
	return last != nil && !last.Ended()
}

// Ready returns the incarnation that is ready now; nil if none is. It never waits.
func (s *Server[P]) Ready() *Incarnation[P] { return s.ready.Load() }

// Setup returns the setup of the present or last incarnation; nil: the subject's configuration. It
// never waits.
func (s *Server[P]) Setup() *scenario.Setup { return s.setup.Load() }

// Configure gives the next incarnation a setup; nil: the subject's configuration. The lock must be
// held.
func (s *Server[P]) Configure(setup *scenario.Setup) { s.next = setup }

// ApplySetup makes the setup of the next incarnation the present one. Start does this itself.
func (s *Server[P]) ApplySetup() {
	s.setup.Store(s.next)
	s.next = nil
}

func (s *Server[P]) record(i *Incarnation[P], state history.State, detail string) {
	s.Recorder.Lifecycle(s.entry(i, state, detail))
}

func (s *Server[P]) entry(i *Incarnation[P], state history.State, detail string) history.Lifecycle {
	return history.Lifecycle{
		Server: s.Name, Incarnation: i.Number, Version: i.Version, Emulates: i.Emulates, Reports: i.Reports, State: state, At: s.Recorder.Now(),
		Detail: detail,
	}
}

// Discard kills the process without a record, because the run is over.
func (s *Server[P]) Discard() {
	s.Lock()
	defer s.Unlock()
	if last := s.Last(); last != nil {
		s.expectEnd(last)
		_ = s.end(context.Background(), last)
	}
}

// expectEnd records that the end of an incarnation is requested, so that it does not count as a
// crash.
func (s *Server[P]) expectEnd(i *Incarnation[P]) {
	s.ready.Store(nil)
	i.expected.Store(true)
}

// end kills the process of an incarnation, if it lives. A failed signal is not an error, because it
// only means that the process is ending.
func (s *Server[P]) end(ctx context.Context, i *Incarnation[P]) error {
	if i.Ended() {
		return nil
	}
	_ = s.Backend.Signal(ctx, i.Process, syscall.SIGKILL)
	return AwaitEnd(ctx, i.Process, s.StopTimeout)
}

// watch waits for the end of an incarnation that was ready. If this end was not requested, it
// records a crash.
func (s *Server[P]) watch(i *Incarnation[P]) {
	select {
	case <-i.Process.Done():
	case <-s.Context.Done():
		return
	}
	s.ready.CompareAndSwap(i, nil)
	if i.expected.Load() {
		return
	}
	s.crash(i)
	if s.Restarts != nil {
		s.awaitRestart(i)
	}
}

// awaitRestart adopts a crashed server that another program starts again, unless a step has started
// it first.
func (s *Server[P]) awaitRestart(crashed *Incarnation[P]) {
	s.Lock()
	defer s.Unlock()
	if s.Last() != crashed || crashed.expected.Load() || s.Restarts.Err() != nil {
		return
	}
	if err := s.adopt(s.Restarts); err != nil && s.Restarts.Err() == nil {
		s.Status("%s: %v", s.Name, err)
	}
}

// crash records, once, that an incarnation ended without a request, or with a failure.
func (s *Server[P]) crash(i *Incarnation[P]) {
	p := i.Process
	detail := p.Name() + ": "
	if panics := p.Log().Panics(-1); len(panics) > 0 { // the last lines of that log are a stack
		detail += panics[0] + "; "
	}
	detail += Ending(p)
	if i.crashed.CompareAndSwap(false, true) {
		s.record(i, history.StateCrashed, detail)
		s.Status("%s: CRASHED: %s", s.Name, detail)
	}
}

// recordPanics records, as crashes, the panics in the logs of incarnations that survived them.
func (s *Server[P]) recordPanics() {
	s.Lock()
	defer s.Unlock()
	for n, i := range s.incarnations {
		if !i.started {
			continue
		}
		found := i.Process.Log().Panics(logEnd(i.Process.Log(), s.incarnations[n+1:]))
		if len(found) > 0 && i.crashed.CompareAndSwap(false, true) {
			s.record(i, history.StateCrashed, fmt.Sprintf("its log has %d panics; the first: %s", len(found), found[0]))
		}
	}
}

// logEnd returns the byte at which the output in l ends in its file, which later incarnations
// share; -1 if the output ends with the file.
func logEnd[P Process](l Log, later []*Incarnation[P]) int64 {
	for _, i := range later {
		if i.started && i.Process.Log().Path == l.Path {
			return i.Process.Log().From
		}
	}
	return -1
}
