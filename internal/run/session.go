package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// SessionCommand is the hidden command of this program that keeps the cluster of a session in a
// sandbox: "session DIR" calls [Sessioned].
const SessionCommand = "session"

// Sessions makes sessions. A session keeps one cluster, and carries out many schedules on it, one
// after the other. Sessions has everything that their clusters need.
type Sessions struct {
	spec        Spec
	versions    []string
	got         programs
	environment []string
}

// Sessions finds out whether the machine can run sessions, and gets the binaries. The clusters have
// the subject, the number of servers, the rate, the etcd and the binaries of the Spec. versions are
// all versions that schedules may start. controllers is the version of kube-controller-manager that
// they may start; if it is empty, they start none.
func (s Spec) Sessions(ctx context.Context, versions []string, controllers string, progress io.Writer) (*Sessions, error) {
	if err := checkEtcd(s.Etcd); err != nil {
		return nil, Usagef("%w", err)
	}
	if err := sandbox.Check(ctx, sandbox.Command{Args: []string{CheckSandboxCommand}}); err != nil {
		return nil, err
	}
	n := neededServers(s.Subject, versions, false)
	n[binaries.Etcd] = []string{s.Etcd}
	if controllers != "" {
		n[binaries.KubeControllerManager] = []string{controllers}
	}
	got, err := s.get(ctx, n, progress)
	if err != nil {
		return nil, err
	}
	return &Sessions{spec: s, versions: versions, got: got, environment: append(Machine(), got.provenance...)}, nil
}

// Environment describes the machine and the binaries.
func (s *Sessions) Environment() []string { return slices.Clone(s.environment) }

// Session is a cluster in a sandbox that carries out schedules. It is not safe for concurrent use.
type Session struct {
	dir     Dir
	end     context.CancelFunc
	ask     *os.File
	answers *json.Decoder
	heard   *os.File
	ended   chan error
}

// ScheduleResult is the result of a schedule in a session.
type ScheduleResult struct {
	// Took is the duration of the schedule, including the reset before it, whose duration is Reset.
	Took  time.Duration `json:"took"`
	Reset time.Duration `json:"reset"`
	// Left lists the differences from the beginning of the session. If there are any, the schedule
	// was not carried out, and needs a new session.
	Left []string `json:"left,omitempty"`
	// Error says why the schedule was not completely carried out. It is empty if it was.
	Error string `json:"error,omitempty"`
}

// Over reports whether the session can carry out no more schedules.
func (r ScheduleResult) Over() bool { return len(r.Left) > 0 || r.Error != "" }

// sessionRequest asks for one schedule. Its history is written into Dir.
type sessionRequest struct {
	Run  history.Run   `json:"run"`
	Plan scenario.Plan `json:"plan"`
	Dir  Dir           `json:"dir"`
}

// Open starts the cluster of a session. Its logs are in the directory out, which must not exist
// yet; session.log has the progress.
func (s *Sessions) Open(ctx context.Context, out string) (*Session, error) {
	dir, err := NewDir(out, "")
	if err != nil {
		return nil, err
	}
	progress, err := os.Create(filepath.Join(dir.logs(), "session.log"))
	if err != nil {
		return nil, fmt.Errorf("write to output directory: %w; choose another with --out", err)
	}
	m := manifest{Run: history.Run{Subject: s.spec.Subject, QPS: s.spec.QPS}, Programs: s.got.of(s.spec)}
	for i := range s.spec.Servers { // at least one of every version
		m.Run.Servers = append(m.Run.Servers, history.Server{Name: scenario.ServerName(i), Version: s.versions[i%len(s.versions)]})
	}
	if err := dir.writeManifest(m); err != nil {
		return nil, err
	}
	requests, ask, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	heard, answer, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, requests.Close(), ask.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	session := &Session{dir: dir, end: cancel, ask: ask, answers: json.NewDecoder(heard), heard: heard, ended: make(chan error, 1)}
	go func() {
		defer func() { _ = progress.Close() }()
		code, err := sandbox.Enter(ctx, sandbox.Command{
			Args: []string{SessionCommand, string(dir)}, Stdin: requests, Stdout: progress, Stderr: progress, ExtraFiles: []*os.File{answer},
			Started: func(pid int) {
				_, _ = requests.Close(), answer.Close() // the sandboxed half has its own copies
				_ = os.WriteFile(dir.pid(), []byte(strconv.Itoa(pid)+"\n"), 0o600)
			},
		})
		_, _ = requests.Close(), answer.Close()
		if err == nil && code != 0 {
			err = fmt.Errorf("the session ended with code %d", code)
		}
		session.ended <- err
	}()
	if ready, err := session.next(); err != nil || ready.Error != "" {
		if err == nil {
			err = errors.New(ready.Error)
		}
		closed := session.Close()
		return nil, fmt.Errorf("start the cluster of a session: %w; logs are in %s", errors.Join(err, closed), dir.logs())
	}
	return session, nil
}

// CarryOut carries out a schedule and writes its history into dir, unless earlier schedules have
// left something behind. The plan must be that of a [Spec] with [Own]. After an error the session
// cannot continue.
func (s *Session) CarryOut(ctx context.Context, p *Plan, dir Dir) (ScheduleResult, error) {
	request := sessionRequest{Run: p.describe(), Plan: p.Schedule, Dir: dir}
	if err := json.NewEncoder(s.ask).Encode(request); err != nil {
		return ScheduleResult{}, fmt.Errorf("ask the session for a schedule: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, Limit(p.Schedule))
	defer cancel()
	defer context.AfterFunc(limited, s.end)()
	result, err := s.next()
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("it took more than %s", Limit(p.Schedule))
	}
	return result, err
}

// next reads the next answer.
func (s *Session) next() (r ScheduleResult, err error) {
	if err = s.answers.Decode(&r); errors.Is(err, io.EOF) {
		err = errors.New("it ended without an answer")
	}
	return r, err
}

// Close ends the cluster. It returns when no process of the cluster runs any more.
func (s *Session) Close() error {
	_ = s.ask.Close() // the end of file ends the session
	var err error
	select {
	case err = <-s.ended:
	case <-time.After(sessionGrace):
		s.end()
		err = <-s.ended
	}
	s.end()
	_ = s.heard.Close()
	s.dir.Tidy()
	return err
}

// sessionGrace is the time that the cluster of a session has to end by itself.
const sessionGrace = 30 * time.Second

// Discard removes the logs of a closed session.
func (s *Session) Discard() error { return os.RemoveAll(string(s.dir)) }
