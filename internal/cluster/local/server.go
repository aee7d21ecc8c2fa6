package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/sandbox"
)

// server is one apiserver with all its incarnations, and its host. Its lock guards the decoy.
type server struct {
	lifecycle.Server[*process]
	cluster *Cluster
	place   Place // without a setup
	host    *sandbox.Host
	decoy   *decoy // an address that it may wrongly advertise; nil if it never has one
}

type incarnation = lifecycle.Incarnation[*process]

func (c *Cluster) newServer(p Place, version string, host *sandbox.Host) *server {
	s := &server{cluster: c, place: p, host: host}
	s.Config, s.Name, s.Version, s.Backend = &c.lifecycle, p.Name, version, s
	return s
}

// withSetup is the place of a server with the setup of its present incarnation.
func (s *server) withSetup() Place {
	p := s.place
	p.Setup = s.Setup()
	return p
}

// Program implements [lifecycle.Backend].
func (s *server) Program(version string) (lifecycle.Program[*process], error) {
	place, config := s.withSetup(), s.cluster.config
	args, err := APIServerArguments(version, config.Subject, place, config.Files)
	url := "https://" + place.Real.String()
	return lifecycle.Program[*process]{
		Start: func(_ context.Context, i *incarnation) (*process, error) {
			name := fmt.Sprintf("%s %q (%s)", Program(config.Subject, place.Setup), s.Name, i.Version)
			binary, err := config.binary(i.Version, place.Setup)
			if err != nil {
				return nil, fmt.Errorf("start %s: %w", name, err)
			}
			return startProcess(name, binary, args, config.Files.log(s.Name), s.host.Start)
		},
		URL:  url,
		Args: args,
		Check: func(ctx context.Context, i *incarnation) error {
			if err := s.checkVersion(ctx, url, i); err != nil {
				return err
			}
			return s.checkCertificate(ctx)
		},
	}, err
}

// Terminate implements [lifecycle.Backend].
func (s *server) Terminate(_ context.Context, p *process, _ string) error {
	return p.signal(syscall.SIGTERM)
}

// KillProcess implements [lifecycle.Backend].
func (s *server) KillProcess(_ context.Context, p *process) error { return p.signal(syscall.SIGKILL) }

// Signal implements [lifecycle.Backend].
func (s *server) Signal(_ context.Context, p *process, signal syscall.Signal) error {
	return p.signal(signal)
}

// checkVersion refuses a binary whose version differs from the expected one; see
// [binaries.StandsFor].
func (s *server) checkVersion(ctx context.Context, url string, i *incarnation) error {
	version, reports, err := lifecycle.VersionAt(ctx, s.Client, url)
	i.Reports = reports
	if err == nil && !binaries.StandsFor(release.Of(i.Version), version) {
		err = fmt.Errorf("it says that it is %s; give the right binary, or remove the cached one with 'skewproof binaries prune'", version)
	}
	return err
}

// checkCertificate checks that a server with a special certificate presents it.
func (s *server) checkCertificate(ctx context.Context) error {
	place := s.withSetup()
	if place.setup().Serving == "" {
		return nil
	}
	shown, err := s.cluster.admin.certificateAt(ctx, place.Real)
	if err != nil {
		return err
	}
	given, err := cert.CertsFromFile(s.cluster.config.Files.key(place.serving() + ".crt"))
	if err != nil {
		return fmt.Errorf("read the certificate that the server was given: %w", err)
	}
	if !shown.Equal(given[0]) {
		return fmt.Errorf("it shows %s, and not the certificate that it was given, %s", describe(shown), describe(given[0]))
	}
	return nil
}

func (s *server) close() {
	s.Discard()
	s.Lock()
	defer s.Unlock()
	if s.decoy != nil {
		s.decoy.close()
		s.decoy = nil
	}
	if s.host != nil {
		s.host.Close()
		s.host = nil
	}
}

// Queued implements [cluster.Queuer] with Linux's counts for each thread, if there are any
// (proc(5), schedstat).
func (c *Cluster) Queued(name string) time.Duration {
	s, err := c.Find(name)
	if err != nil {
		return 0
	}
	i := s.Ready()
	if i == nil || i.Ended() {
		return 0
	}
	return queued("/proc", i.Process.cmd.Process.Pid)
}

// queued is how long the threads of a process have waited for a CPU, without threads that have
// ended. proc is the directory of processes. The second number in a schedstat is the wait in
// nanoseconds.
func queued(proc string, pid int) time.Duration {
	threads, err := filepath.Glob(filepath.Join(proc, strconv.Itoa(pid), "task", "*", "schedstat"))
	if err != nil {
		return 0 // cannot happen: the pattern is valid
	}
	var sum time.Duration
	for _, path := range threads {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended meanwhile
		}
		if fields := strings.Fields(string(line)); len(fields) > 1 {
			if ns, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				sum += time.Duration(ns)
			}
		}
	}
	return sum
}

// process is one running program with its output in a log file.
type process struct {
	name string
	cmd  *exec.Cmd
	log  lifecycle.Log
	done chan struct{}
	err  error // valid after done is closed
}

// startProcess starts path with args by calling start, which is cmd.Start or a host's method.
func startProcess(name, path string, args []string, logPath string, start func(*exec.Cmd) error) (*process, error) {
	file, log, err := lifecycle.OpenLog(logPath)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"} // without the user's environment and its proxies
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Name and the others implement [lifecycle.Process].
func (p *process) Name() string          { return p.name }
func (p *process) Done() <-chan struct{} { return p.done }
func (p *process) Log() lifecycle.Log    { return p.log }

// Exit implements [lifecycle.Process].
func (p *process) Exit() (how string, ok bool) {
	if p.err != nil {
		return p.err.Error(), false
	}
	return "exit status 0", true
}

// signal sends a signal. It is not an error if the process has ended.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", s, p.name, err)
	}
	return nil
}
