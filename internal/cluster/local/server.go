package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	apimachineryversion "k8s.io/apimachinery/pkg/version"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
)

const (
	// readyTimeout is generous: a loaded two-core machine takes a tenth of it.
	readyTimeout = 2 * time.Minute
	// stopTimeout exceeds kube-apiserver's own limit for requests in flight (--request-timeout, 60 s).
	stopTimeout = 75 * time.Second
)

// toxiproxyAPI is where toxiproxy's own client finds the links.
var toxiproxyAPI = netip.MustParseAddrPort("127.0.0.1:8474")

// server is one apiserver through all its incarnations.
type server struct {
	cluster *Cluster
	place   Place
	host    *sandbox.Host

	serving atomic.Int64 // the incarnation that is ready, 0 if none is

	mu           sync.Mutex // held through each change of state, which may take long
	version      string
	incarnation  int
	process      *process
	incarnations []*incarnation
}

// incarnation is one process of a server, as long as its log is of interest.
type incarnation struct {
	number  int
	version string
	process *process
	asked   atomic.Bool // its end has been asked for
	crashed atomic.Bool // its end has been recorded as a crash
}

// StartServer starts a server that is not running, with the given version ("" for the one it had), and waits until it is ready.
func (c *Cluster) StartServer(ctx context.Context, name, version string) error {
	s, err := c.server(name)
	if err != nil {
		return err
	}
	return s.start(ctx, version)
}

func (s *server) start(ctx context.Context, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	version = cmp.Or(version, s.version)
	what := fmt.Sprintf("kube-apiserver %q (%s)", s.place.Name, version)
	if s.process != nil && !s.process.ended() {
		return fmt.Errorf("start %s: it is running already", what)
	}
	binary, ok := s.cluster.config.APIServers[version]
	if !ok {
		return fmt.Errorf("start %s: no binary of that version was prepared", what)
	}
	args, err := APIServerArguments(version, s.cluster.config.Subject, s.place, s.cluster.config.Files)
	if err != nil {
		return fmt.Errorf("start %s: %w", what, err)
	}
	s.version = version
	s.incarnation++
	s.record(history.StateStarting, "")
	p, err := startProcess(what, binary, args, s.cluster.config.Files.log(s.place.Name), s.host.Start)
	if err != nil {
		return err
	}
	s.process = p
	now := &incarnation{number: s.incarnation, version: version, process: p}
	s.incarnations = append(s.incarnations, now)
	s.cluster.config.Status("%s: starting %s", s.place.Name, version)
	if err := s.awaitReady(ctx); err != nil {
		if s.cluster.up.Load() && p.ended() { // a version that cannot start beside the others is a finding, not our failure
			s.crash(now)
		}
		return err
	}
	s.record(history.StateReady, "")
	s.serving.Store(int64(s.incarnation))
	go s.watch(now)
	s.cluster.config.Status("%s: %s is ready", s.place.Name, version)
	return nil
}

// watch records a crash: the end of a process that was ready and that nobody asked to end.
func (s *server) watch(i *incarnation) {
	<-i.process.done
	s.serving.CompareAndSwap(int64(i.number), 0)
	if !i.asked.Load() {
		s.crash(i)
	}
}

// crash records, once, that an incarnation has ended as it should not.
func (s *server) crash(i *incarnation) {
	if !i.crashed.CompareAndSwap(false, true) {
		return
	}
	s.cluster.config.Recorder.Lifecycle(history.Lifecycle{
		Server: s.place.Name, Incarnation: i.number, Version: i.version,
		State: history.StateCrashed, At: s.cluster.config.Recorder.Now(), Detail: i.process.epitaph(),
	})
	s.cluster.config.Status("%s: CRASHED: %s", s.place.Name, i.process.epitaph())
}

// awaitReady waits for /readyz and then asks for /version: a binary that is not what it is called would make every
// verdict worthless.
func (s *server) awaitReady(ctx context.Context) error {
	base := "https://" + s.place.Real.String()
	client := s.cluster.probe
	err := await(ctx, s.process, readyTimeout, func(ctx context.Context) error {
		return get(ctx, client, base+"/readyz", io.Discard)
	})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := get(ctx, client, base+"/version", &body); err != nil {
		return fmt.Errorf("ask %s for its version: %w", s.process.name, err)
	}
	var info apimachineryversion.Info
	if err := json.Unmarshal(body.Bytes(), &info); err != nil {
		return fmt.Errorf("ask %s for its version: %w", s.process.name, err)
	}
	if info.GitVersion != s.version {
		return fmt.Errorf("start %s: it says that it is %s; give the right binary, or remove the cached one with 'skewproof binaries prune'", s.process.name, info.GitVersion)
	}
	return nil
}

// StopServer asks a server to end gracefully and waits until it has.
func (c *Cluster) StopServer(ctx context.Context, name string) error {
	s, err := c.running(name, "stop")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.expectEnd()
	s.record(history.StateStopping, "")
	if err := s.process.signal(syscall.SIGTERM); err != nil {
		return err
	}
	limit := time.NewTimer(stopTimeout)
	defer limit.Stop()
	select {
	case <-s.process.done:
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", s.process.name, context.Cause(ctx))
	case <-limit.C:
		return fmt.Errorf("stop %s: still running %s after SIGTERM; last lines of its log:\n%s", s.process.name, stopTimeout, s.process.tail(8))
	}
	if s.process.err != nil { // it was asked to stop, and died of something else on the way
		s.crash(s.now())
		return nil
	}
	s.record(history.StateStopped, "")
	s.cluster.config.Status("%s: %s has stopped", s.place.Name, s.version)
	return nil
}

// KillServer ends a server as a power cut would.
func (c *Cluster) KillServer(_ context.Context, name string) error {
	s, err := c.running(name, "kill")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.expectEnd()
	s.record(history.StateKilled, "")
	if err := s.process.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-s.process.done
	s.cluster.config.Status("%s: %s was killed", s.place.Name, s.version)
	return nil
}

// PauseServer stops a server's execution: its connections stay open and nothing answers.
func (c *Cluster) PauseServer(_ context.Context, name string) error {
	return c.signal(name, "pause", syscall.SIGSTOP, history.StatePaused)
}

// ResumeServer lets a paused server run on.
func (c *Cluster) ResumeServer(_ context.Context, name string) error {
	return c.signal(name, "resume", syscall.SIGCONT, history.StateResumed)
}

func (c *Cluster) signal(name, verb string, signal syscall.Signal, state history.State) error {
	s, err := c.running(name, verb)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := s.process.signal(signal); err != nil {
		return err
	}
	s.record(state, "")
	s.cluster.config.Status("%s: %sd", s.place.Name, verb)
	return nil
}

// ReplaceServer stops a server gracefully and starts the given version ("" for the same) in its place: same host, same address, same
// identity, as an upgrade does.
func (c *Cluster) ReplaceServer(ctx context.Context, name, version string) error {
	if err := c.StopServer(ctx, name); err != nil {
		return err
	}
	return c.StartServer(ctx, name, version)
}

// running returns the server locked, or an error if it does not run.
func (c *Cluster) running(name, verb string) (*server, error) {
	s, err := c.server(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	s.mu.Lock()
	if s.process == nil || s.process.ended() {
		s.mu.Unlock()
		return nil, fmt.Errorf("%s server %q: it is not running", verb, name)
	}
	return s, nil
}

// expectEnd notes that the end of the present process is asked for.
func (s *server) expectEnd() {
	s.serving.Store(0)
	s.now().asked.Store(true)
}

// now is the present incarnation, or the last one. There is one wherever it is called.
func (s *server) now() *incarnation { return s.incarnations[len(s.incarnations)-1] }

func (s *server) record(state history.State, detail string) {
	s.cluster.config.Recorder.Lifecycle(history.Lifecycle{
		Server: s.place.Name, Incarnation: s.incarnation, Version: s.version,
		State: state, At: s.cluster.config.Recorder.Now(), Detail: detail,
	})
}

// close ends the process without a record: the run is over.
func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && !s.process.ended() {
		s.expectEnd()
		_ = s.process.signal(syscall.SIGKILL)
		<-s.process.done
	}
	if s.host != nil {
		s.host.Close()
		s.host = nil
	}
}

// RecordPanics records, as crashes at the end of the run, panics that incarnations survived but left in their logs.
func (c *Cluster) RecordPanics() {
	for _, p := range c.places {
		s := c.servers[p.Name]
		s.mu.Lock()
		for n, i := range s.incarnations {
			to := int64(-1) // the end of the log
			if n+1 < len(s.incarnations) {
				to = s.incarnations[n+1].process.logFrom
			}
			found := panics(i.process.logPath, i.process.logFrom, to)
			if len(found) == 0 || !i.crashed.CompareAndSwap(false, true) {
				continue
			}
			c.config.Recorder.Lifecycle(history.Lifecycle{
				Server: p.Name, Incarnation: i.number, Version: i.version, State: history.StateCrashed, At: c.config.Recorder.Now(),
				Detail: fmt.Sprintf("its log tells of %d panics; the first: %s", len(found), found[0]),
			})
		}
		s.mu.Unlock()
	}
}

// Serving is the incarnation of a server that is ready at this moment, 0 if none is. It never waits.
func (c *Cluster) Serving(name string) int {
	s, err := c.server(name)
	if err != nil {
		return 0
	}
	return int(s.serving.Load())
}
