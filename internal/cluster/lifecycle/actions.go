package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Start starts a server that does not run, with a version ("": its last version), and returns when
// it is ready. If the server refuses its setup, the error is a [scenario.RefusedError], and the
// server does not run.
func (s *Server[P]) Start(ctx context.Context, version string) error {
	s.Lock()
	defer s.Unlock()
	version = cmp.Or(version, s.Version)
	if s.Runs() {
		return fmt.Errorf("start server %q (%s): it is running already", s.Name, version)
	}
	return s.start(ctx, version)
}

func (s *Server[P]) start(ctx context.Context, version string) error {
	s.ApplySetup()
	program, err := s.Backend.Program(version)
	if err != nil {
		return fmt.Errorf("start server %q (%s): %w", s.Name, version, err)
	}
	s.Version = version
	s.Status("%s: starting %s", s.Name, version)
	return s.launch(ctx, s.Begin(), program)
}

// Adopt makes a process that another program starts the first incarnation, and waits until it is
// ready.
func (s *Server[P]) Adopt(ctx context.Context) error {
	s.Lock()
	defer s.Unlock()
	return s.adopt(ctx)
}

func (s *Server[P]) adopt(ctx context.Context) error {
	program, err := s.Backend.Program(s.Version)
	if err != nil {
		return fmt.Errorf("start server %q (%s): %w", s.Name, s.Version, err)
	}
	i := s.Begin()
	i.Adopted = true
	return s.launch(ctx, i, program)
}

// launch starts the program of an incarnation, and records that it is ready.
func (s *Server[P]) launch(ctx context.Context, i *Incarnation[P], program Program[P]) error {
	s.configured(i, program)
	if err := s.run(ctx, i, program); err != nil {
		return s.startFailed(ctx, i, err)
	}
	s.setReady(i)
	s.tasks.Go(func() { s.watch(i) })
	return nil
}

// run starts a program and waits until it is ready. The incarnation begins with its process.
func (s *Server[P]) run(ctx context.Context, i *Incarnation[P], program Program[P]) error {
	p, err := program.Start(ctx, i)
	if err != nil {
		return err
	}
	s.record(i, history.StateStarting, "")
	i.Process, i.started = p, true
	err = AwaitReady(ctx, p, s.ReadyTimeout, func(ctx context.Context) error {
		return Get(ctx, s.Client, program.URL+"/readyz", io.Discard)
	})
	if err != nil || program.Check == nil {
		return err
	}
	if err := program.Check(ctx, i); err != nil {
		return fmt.Errorf("start %s: %w", p.Name(), err)
	}
	return nil
}

func (s *Server[P]) setReady(i *Incarnation[P]) {
	s.record(i, history.StateReady, "")
	s.ready.Store(i)
	s.Status("%s: %s is ready", s.Name, i.Version)
}

// startFailed classifies a failed start: a refusal, a crash, or the failure of the run.
func (s *Server[P]) startFailed(ctx context.Context, i *Incarnation[P], err error) error {
	if !i.started || !i.Ended() {
		return err
	}
	if log := i.Process.Log(); s.Setup().Refusable() && len(log.Panics(-1)) == 0 {
		return s.refused(ctx, i, log.Tail(4))
	}
	if s.Up() { // if a version cannot start beside the others, this is a finding
		s.crash(i)
	}
	return err
}

func (s *Server[P]) refused(ctx context.Context, i *Incarnation[P], why string) error {
	s.expectEnd(i)
	s.record(i, history.StateStopping, "it refuses its configuration: "+why)
	if err := s.terminate(ctx, i, ""); err != nil {
		return err
	}
	s.record(i, history.StateStopped, "")
	s.Status("%s: refuses to start, %s: %s", s.Name, s.Setup(), why)
	return &scenario.RefusedError{Server: s.Name, Why: why}
}

// Stop asks a server to end gracefully and returns when it has ended.
func (s *Server[P]) Stop(ctx context.Context) error {
	if err := s.lockRunning("stop"); err != nil {
		return err
	}
	defer s.Unlock()
	return s.stop(ctx, "")
}

// stop ends the present incarnation. next is the version that replaces it, or "". If the process
// does not end in time, it is killed, as a kubelet kills a container after its grace period: a
// kube-apiserver that cannot reach etcd may need more than a minute.
func (s *Server[P]) stop(ctx context.Context, next string) error {
	i := s.Last()
	stopping := s.entry(i, history.StateStopping, "")
	s.draining.Store(&stopping) // first: at no time does the server look gone
	defer s.draining.Store(nil)
	s.expectEnd(i)
	s.Recorder.Lifecycle(stopping)
	err := s.terminate(ctx, i, next)
	if still := (*stillRunningError)(nil); errors.As(err, &still) && ctx.Err() == nil {
		s.record(i, history.StateKilled, fmt.Sprintf("it was asked to stop, and was %v", still))
		s.Status("%s: %s was asked to stop, and was %v; it is killed", s.Name, i.Version, still)
		return s.end(ctx, i)
	}
	if err != nil {
		return err
	}
	if _, ok := i.Process.Exit(); !ok { // it had to stop, but ended with a failure
		s.crash(i)
		return nil
	}
	s.record(i, history.StateStopped, "")
	s.Status("%s: %s has stopped", s.Name, i.Version)
	return nil
}

// terminate ends the process gracefully.
func (s *Server[P]) terminate(ctx context.Context, i *Incarnation[P], next string) error {
	if err := s.Backend.Terminate(ctx, i.Process, next); err != nil {
		return err
	}
	return AwaitEnd(ctx, i.Process, s.StopTimeout+s.Setup().Drain())
}

// Replace stops a server gracefully and starts a version ("" for the same) in its place, with the
// same host, address and identity, like an upgrade. It returns an error for a server with a setup.
func (s *Server[P]) Replace(ctx context.Context, version string) error {
	if err := s.lockRunning("replace"); err != nil {
		return err
	}
	defer s.Unlock()
	if s.next != nil || s.Setup() != nil {
		return fmt.Errorf("replace server %q: it has a setup of its own, or must get one: stop, configure and start it", s.Name)
	}
	version = cmp.Or(version, s.Version)
	if err := s.stop(ctx, version); err != nil {
		return err
	}
	return s.start(ctx, version)
}

// Kill ends a server like a power cut.
func (s *Server[P]) Kill(ctx context.Context) error {
	if err := s.lockRunning("kill"); err != nil {
		return err
	}
	defer s.Unlock()
	i := s.Last()
	s.expectEnd(i)
	s.record(i, history.StateKilled, "")
	if err := s.Backend.KillProcess(ctx, i.Process); err != nil {
		return fmt.Errorf("kill server %q: %w", s.Name, err)
	}
	if err := AwaitEnd(ctx, i.Process, s.StopTimeout); err != nil {
		return err
	}
	s.Status("%s: %s was killed", s.Name, i.Version)
	return nil
}

// signal pauses or resumes a server. A paused server keeps its connections and does not answer.
func (s *Server[P]) signal(ctx context.Context, verb string, signal syscall.Signal, state history.State) error {
	if err := s.lockRunning(verb); err != nil {
		return err
	}
	defer s.Unlock()
	i := s.Last()
	if err := s.Backend.Signal(ctx, i.Process, signal); err != nil {
		return fmt.Errorf("%s server %q: %w", verb, s.Name, err)
	}
	s.record(i, state, "")
	s.Status("%s: %sd", s.Name, verb)
	return nil
}

func (s *Server[P]) lockRunning(verb string) error {
	s.Lock()
	if !s.Runs() {
		s.Unlock()
		return fmt.Errorf("%s server %q: it is not running", verb, s.Name)
	}
	return nil
}
