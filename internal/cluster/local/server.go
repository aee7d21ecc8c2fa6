package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/life"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

const (
	// readyTimeout is generous: a loaded two-core machine takes a tenth of it.
	readyTimeout = 2 * time.Minute
	// stopTimeout exceeds kube-apiserver's own limit for requests in flight (--request-timeout, 60 s).
	stopTimeout = 75 * time.Second
)

// toxiproxyAPI is where toxiproxy's own client finds the links.
var toxiproxyAPI = netip.MustParseAddrPort("127.0.0.1:8474")

// server is one apiserver through all its incarnations, and where it lives. Its lock guards what is not atomic.
type server struct {
	life.Server[*process]
	cluster *Cluster
	place   Place
	host    *sandbox.Host
	current atomic.Pointer[Place]       // with what its present process, or the last one, was started
	ready   atomic.Pointer[incarnation] // the last one that was
	next    *scenario.Setup             // of the next start
	astray  *astray                     // an address that it may wrongly advertise; nil if it never has
}

func (c *Cluster) newServer(p Place, version string, host *sandbox.Host) *server {
	s := &server{cluster: c, place: p, host: host}
	s.Name, s.Version, s.Recorder, s.Status = p.Name, version, c.config.Recorder, c.config.Status
	s.current.Store(&p)
	return s
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
	s.Lock()
	defer s.Unlock()
	version = cmp.Or(version, s.Version)
	if s.Runs() {
		return fmt.Errorf("start server %q (%s): it is running already", s.place.Name, version)
	}
	if before := s.Last(); before != nil {
		if err := kill(before.Unit); err != nil { // the others of its processes, if it has crashed just now
			return err
		}
	}
	place := s.place
	place.Setup, s.next = s.next, nil
	components, err := Components(version, s.cluster.config.Subject, place, s.cluster.config.Files)
	if err != nil {
		return fmt.Errorf("start server %q (%s): %w", s.place.Name, version, err)
	}
	s.Version = version
	_, place = place.configured(s.cluster.config.Subject)
	s.current.Store(&place)
	now := s.Begin()
	now.Emulates = place.Setup.Like()
	s.Record(history.StateStarting, "")
	s.Status("%s: starting %s", s.place.Name, version)
	for _, c := range components {
		if err := s.launch(ctx, now, c); err != nil {
			if why := s.refusal(ctx, now, place); why != nil {
				return why
			}
			if s.cluster.up.Load() && now.Ended() { // a version that cannot start beside the others is a finding, not our failure
				s.Crash(now, now.First())
				err = errors.Join(err, kill(now.Unit))
			}
			return err
		}
	}
	if err := s.checkShown(ctx, place); err != nil {
		return err
	}
	s.Ready(now)
	s.ready.Store(now)
	go s.watch(now)
	return nil
}

// present is the place with what the present process was started with.
func (s *server) present() Place { return *s.current.Load() }

// refusal ends an incarnation that would not start with a setup that may be refused, and says so; nil if it was not that.
func (s *server) refusal(ctx context.Context, now *incarnation, place Place) error {
	if !place.Setup.Refusable() || !now.Ended() || len(now.First().log.Panics(-1)) > 0 {
		return nil
	}
	s.ExpectEnd()
	why := now.First().log.Tail(4)
	s.Record(history.StateStopping, "it refuses its configuration: "+why)
	if _, err := stop(ctx, now.Unit, stopTimeout); err != nil { // the others of its processes
		return err
	}
	s.Record(history.StateStopped, "")
	s.Status("%s: refuses to start, %s: %s", s.place.Name, place.Setup, why)
	return &scenario.RefusedError{Server: s.place.Name, Why: why}
}

// launch starts one program of an incarnation and waits until it is ready.
func (s *server) launch(ctx context.Context, i *incarnation, c Component) error {
	name := fmt.Sprintf("%s %q (%s)", c.Program, s.place.Name, i.Version)
	binary, err := s.cluster.config.binary(c.Program, i.Version)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p, err := startProcess(name, binary, c.Args, c.Log, s.host.Start)
	if err != nil {
		return err
	}
	i.Add(p)
	err = i.Await(ctx, p, readyTimeout, func(ctx context.Context) error {
		return life.Get(ctx, s.cluster.probe, c.Ready, io.Discard)
	})
	if err != nil || c.Program != ProgramAPIServer {
		return err
	}
	return s.checkVersion(ctx, p, i.Version)
}

// checkVersion refuses a binary that is not what it is called.
func (s *server) checkVersion(ctx context.Context, p *process, want string) error {
	version, err := life.VersionAt(ctx, s.cluster.probe, "https://"+s.present().Own.String(), s.present().Setup.Like())
	switch {
	case err != nil:
		return fmt.Errorf("start %s: %w", p.name, err)
	case version != release.Of(want):
		return fmt.Errorf("start %s: it says that it is %s; give the right binary, or remove the cached one with 'skewproof binaries prune'", p.name, version)
	}
	return nil
}

// StopServer asks a server to end gracefully and waits until it has.
func (c *Cluster) StopServer(ctx context.Context, name string) error {
	s, err := c.running(name, "stop")
	if err != nil {
		return err
	}
	defer s.Unlock()
	s.ExpectEnd()
	s.Record(history.StateStopping, "")
	failed, err := stop(ctx, s.Last().Unit, stopTimeout)
	if err != nil {
		return err
	}
	if failed != nil { // it was asked to stop, and died of something else on the way
		s.Crash(s.Last(), failed)
		return nil
	}
	s.Record(history.StateStopped, "")
	s.Status("%s: %s has stopped", name, s.Version)
	return nil
}

// KillServer ends a server as a power cut would.
func (c *Cluster) KillServer(_ context.Context, name string) error {
	s, err := c.running(name, "kill")
	if err != nil {
		return err
	}
	defer s.Unlock()
	s.ExpectEnd()
	s.Record(history.StateKilled, "")
	if err := kill(s.Last().Unit); err != nil {
		return err
	}
	s.Status("%s: %s was killed", name, s.Version)
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

func (c *Cluster) signal(name, verb string, which syscall.Signal, state history.State) error {
	s, err := c.running(name, verb)
	if err != nil {
		return err
	}
	defer s.Unlock()
	if err := signal(s.Last().Unit, which); err != nil {
		return err
	}
	s.Record(state, "")
	s.Status("%s: %sd", name, verb)
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
	return s, s.LockRunning(verb)
}

// close ends all processes without a record: the run is over.
func (s *server) close() {
	s.Lock()
	defer s.Unlock()
	if last := s.Last(); last != nil {
		s.ExpectEnd()
		_ = kill(last.Unit)
	}
	if s.astray != nil {
		s.astray.close()
		s.astray = nil
	}
	if s.host != nil {
		s.host.Close()
		s.host = nil
	}
}

// Serving is the incarnation of a server that is ready at this moment, 0 if none is. It never waits.
func (c *Cluster) Serving(name string) int {
	s, err := c.server(name)
	if err != nil {
		return 0
	}
	return s.Serving()
}
