package kind

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// StartServer starts a server that is not running, with the given version ("" for the one it had), and waits until it is ready.
func (c *Cluster) StartServer(ctx context.Context, name, version string) error {
	s, err := c.server(name)
	if err != nil {
		return err
	}
	s.Lock()
	defer s.Unlock()
	version = cmp.Or(version, s.Version)
	if s.Runs() {
		return fmt.Errorf("start server %q (%s): it is running already", name, version)
	}
	return s.start(ctx, version)
}

func (s *server) start(ctx context.Context, version string) error {
	s.Version = version
	s.take()
	now := s.Begin()
	s.Status("%s: starting %s", s.place.Name, version)
	return s.launch(ctx, now, func(pod string) error { return s.put(ctx, pod, version, now.Number) })
}

// StopServer asks a server to end gracefully, as its kubelet does, and waits until it has.
func (c *Cluster) StopServer(ctx context.Context, name string) error {
	s, err := c.running(name, "stop")
	if err != nil {
		return err
	}
	defer s.Unlock()
	s.ExpectEnd()
	s.Record(history.StateStopping, "")
	return s.end(ctx, func(pod string) error { return s.takeAway(ctx, "", pod) })
}

// end lets the processes of the present incarnation end by change, which makes the kubelet end a pod: the one started last goes first.
func (s *server) end(ctx context.Context, change func(pod string) error) error {
	for _, p := range slices.Backward(s.Last().Processes()) {
		if err := change(p.pod); err != nil {
			return err
		}
		if err := p.gone(ctx, stopTimeout); err != nil {
			return err
		}
	}
	s.Record(history.StateStopped, "")
	s.Status("%s: %s has stopped", s.place.Name, s.Last().Version)
	return nil
}

// ReplaceServer stops a server gracefully and starts the given version ("" for the same) in its place: same node, same address, same
// identity. The kube-apiserver's manifest is changed in place, as kubeadm does it in an upgrade.
func (c *Cluster) ReplaceServer(ctx context.Context, name, version string) error {
	s, err := c.running(name, "replace")
	if err != nil {
		return err
	}
	defer s.Unlock()
	s.ExpectEnd()
	s.Record(history.StateStopping, "")
	version = cmp.Or(version, s.Version)
	if s.next != nil || s.setup.Load() != nil { // then the engine stops, configures and starts
		return fmt.Errorf("replace server %q: it is set up in a way of its own, or shall be", name)
	}
	err = s.end(ctx, func(pod string) error {
		if pod != apiserverPod {
			return s.takeAway(ctx, "", pod)
		}
		return s.put(ctx, pod, version, s.Last().Number+1)
	})
	if err != nil {
		return err
	}
	return s.start(ctx, version)
}

// KillServer ends a server as a power cut would: SIGKILL in the node. Its manifests go with it, or the kubelet would start it again.
func (c *Cluster) KillServer(ctx context.Context, name string) error {
	s, err := c.running(name, "kill")
	if err != nil {
		return err
	}
	defer s.Unlock()
	s.ExpectEnd()
	s.Record(history.StateKilled, "")
	if err := s.takeAway(ctx, "kill -KILL "+strings.Join(pids(s.Last().Living()), " ")+"\n", s.pods()...); err != nil {
		return err
	}
	for _, p := range s.Last().Processes() {
		if err := p.gone(ctx, stopTimeout); err != nil {
			return err
		}
	}
	s.Status("%s: %s was killed", name, s.Version)
	return nil
}

// PauseServer stops the execution of a server's processes, not of its node: its connections stay open and nothing answers. The kubelet would put up with
// that for 80 s, the patience of kubeadm's liveness probe (8 times 10 s).
func (c *Cluster) PauseServer(ctx context.Context, name string) error {
	return c.signal(ctx, name, "pause", "STOP", history.StatePaused)
}

// ResumeServer lets a paused server run on.
func (c *Cluster) ResumeServer(ctx context.Context, name string) error {
	return c.signal(ctx, name, "resume", "CONT", history.StateResumed)
}

func (c *Cluster) signal(ctx context.Context, name, verb, signal string, state history.State) error {
	s, err := c.running(name, verb)
	if err != nil {
		return err
	}
	defer s.Unlock()
	if _, err := inNode(ctx, s.place.Node, append([]string{"kill", "-" + signal}, pids(s.Last().Living())...)...); err != nil {
		return fmt.Errorf("%s server %q: %w", verb, name, err)
	}
	s.Record(state, "")
	s.Status("%s: %sd", name, verb)
	return nil
}

// running returns the server locked, or an error if it does not run.
func (c *Cluster) running(name, verb string) (*server, error) {
	s, err := c.server(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	return s, s.LockRunning(verb)
}
