package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/skewproof/skewproof/internal/history"
)

func (s *Server[P]) base() *Server[P] { return s }

// Servers are those of a cluster, in order. A cluster that embeds them has the methods of
// [cluster.Cluster] that act on one server.
type Servers[P Process, S interface{ base() *Server[P] }] []S

// Find is the server of that name, or an error that lists those there are.
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

// act finds a server and does something with it.
func (all Servers[P, S]) act(name string, do func(*Server[P]) error) error {
	s, err := all.Find(name)
	if err != nil {
		return err
	}
	return do(s.base())
}

// StartServer is [Server.Start] of the server of that name.
func (all Servers[P, S]) StartServer(ctx context.Context, name, version string) error {
	return all.act(name, func(s *Server[P]) error { return s.Start(ctx, version) })
}

// StopServer is [Server.Stop] of the server of that name.
func (all Servers[P, S]) StopServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.Stop(ctx) })
}

// KillServer is [Server.Kill] of the server of that name.
func (all Servers[P, S]) KillServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.Kill(ctx) })
}

// PauseServer stops the execution of a server: its connections stay open and nothing answers.
func (all Servers[P, S]) PauseServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.signal(ctx, "pause", syscall.SIGSTOP, history.StatePaused) })
}

// ResumeServer lets a paused server run on.
func (all Servers[P, S]) ResumeServer(ctx context.Context, name string) error {
	return all.act(name, func(s *Server[P]) error { return s.signal(ctx, "resume", syscall.SIGCONT, history.StateResumed) })
}

// ReplaceServer is [Server.Replace] of the server of that name.
func (all Servers[P, S]) ReplaceServer(ctx context.Context, name, version string) error {
	return all.act(name, func(s *Server[P]) error { return s.Replace(ctx, version) })
}

// Serving is the incarnation of a server that is ready now; 0 if there is none. It never waits.
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

// RecordPanics records, as crashes, panics that servers survived and left in their logs.
func (all Servers[P, S]) RecordPanics() {
	for _, s := range all {
		s.base().recordPanics()
	}
}
