package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/skewproof/skewproof/internal/history"
)

func (s *Server[P]) base() *Server[P] { return s }

// Servers are the servers of a cluster, in order. A cluster that embeds Servers has the methods of
// [cluster.Cluster] for one server.
type Servers[P Process, S interface{ base() *Server[P] }] []S

// Find returns the server with that name, or an error that lists the names of all servers.
func (all Servers[P, S]) Find(name string) (S, error) {
	var names []string
	for _, s := range all {
		if s.base().Name == name {
			return s, nil
		}
		names = append(names, s.base().Name)
	}
	var none S
	return none, fmt.Errorf("no server %q: the run has %s", name, strings.Join(names, ", "))
}

// act finds a server and calls do with it.
func (all Servers[P, S]) act(name string, do func(*Server[P]) error) error {
	s, err := all.Find(name)
	if err != nil {
		return err
	}
	return do(s.base())
}

// StartServer calls [Server.Start] of the server with that name.
func (all Servers[P, S]) StartServer(ctx context.Context, name, version string) error {
	return all.act(name, func(s *Server[P]) error { return s.Start(ctx, version) })
}

// StopServer calls [Server.Stop] of the server with that name.
func (all Servers[P, S]) StopServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.Stop(ctx) })
}

// KillServer calls [Server.Kill] of the server with that name.
func (all Servers[P, S]) KillServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.Kill(ctx) })
}

// PauseServer stops the execution of a server: its connections stay open, but it does not answer.
func (all Servers[P, S]) PauseServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.signal(ctx, "pause", syscall.SIGSTOP, history.StatePaused) })
}

// ResumeServer lets a paused server continue.
func (all Servers[P, S]) ResumeServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.signal(ctx, "resume", syscall.SIGCONT, history.StateResumed) })
}

// ReplaceServer calls [Server.Replace] of the server with that name.
func (all Servers[P, S]) ReplaceServer(ctx context.Context, name, version string) error {
	return all.act(name, func(s *Server[P]) error { return s.Replace(ctx, version) })
}

// Serving returns the number of the server's incarnation that is ready now; 0 if none is. It never
// waits.
func (all Servers[P, S]) Serving(name string) int {
	s, err := all.Find(name)
	if err != nil {
		return 0
	}
	if i := s.base().Ready(); i != nil {
		return i.Number
	}
	return 0
}

// Draining implements [cluster.Drainer]. It never waits.
func (all Servers[P, S]) Draining(name string) *history.Lifecycle {
	s, err := all.Find(name)
	if err != nil {
		return nil
	}
	return s.base().draining.Load()
}

// RecordPanics records, as crashes, the panics in the logs of servers that survived them.
func (all Servers[P, S]) RecordPanics() {
	for _, s := range all {
		s.base().recordPanics()
	}
}

// ForgetIncarnations makes the incarnations of every server count from 1 again. No server may run.
func (all Servers[P, S]) ForgetIncarnations() {
	for _, s := range all {
		of := s.base()
		of.Lock()
		of.incarnations = nil
		of.Unlock()
	}
}
