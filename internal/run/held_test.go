package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// obedient is a cluster whose servers can be killed, with everything else that an executor needs.
type obedient struct {
	cluster.Cluster
	*history.Recorder
	step.Definer

	mu     sync.Mutex
	killed map[string]bool
	during func(ctx context.Context) // called during a kill; nil: nothing is called
}

func (c *obedient) KillServer(ctx context.Context, name string) error {
	if c.during != nil {
		c.during(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed[name] = true
	return ctx.Err()
}

func (c *obedient) StartServer(_ context.Context, name, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.killed, name)
	return nil
}

func (c *obedient) Serving(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed[name] {
		return 0
	}
	return 1
}

func (*obedient) Sleep(context.Context, history.Time) error { return nil }
func (*obedient) Sweep(context.Context) error               { return nil }
func (*obedient) Observe(context.Context, ...string)        {}

// holding is a held cluster of the servers a and b, in a directory whose name is long.
type holding struct {
	*held
	*obedient
	dir   Dir
	end   func()
	ended chan error
}

func holdObedient(t *testing.T) *holding {
	t.Helper()
	c := &obedient{Recorder: history.NewRecorder(io.Discard, history.Run{}, nil), killed: map[string]bool{}}
	var e step.Executor
	servers := []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}
	if err := e.Prepare(step.Config{Cluster: c, Clock: c, Recorder: c, Load: c, Definer: c, Status: t.Logf}, servers, nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h := &holding{
		held:     &held{steps: &e, status: t.Logf, provide: func(v, _ string) error { return errors.New("there is no " + v) }},
		obedient: c, dir: Dir(dir), end: cancel, ended: make(chan error, 1),
	}
	if err := h.dir.writeManifest(manifest{Run: history.Run{Backend: scenario.BackendKind}}); err != nil { // kind has no binaries to fetch
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		h.ended <- h.hold(ctx, h.dir, func() error {
			close(ready)
			return nil
		})
	}()
	<-ready
	t.Cleanup(cancel)
	return h
}

// act is 'skewproof step'. It returns its output.
func (h *holding) act(t *testing.T, line string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := h.dir.Act(t.Context(), strings.Fields(line), Console{Out: &out, Progress: io.Discard})
	return out.String(), err
}

func TestStepsOnAHeldCluster(t *testing.T) {
	h := holdObedient(t)
	if info, err := os.Stat(h.dir.File(socketName)); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v, error %v; want mode 600", info.Mode(), err)
	}
	for _, c := range []struct {
		line, says, fails string
		kind              Kind
	}{
		{line: "list", says: "a v1.37.1 runs\nb v1.36.3 runs\n"},
		{line: "kill b", says: "kill b\ndone in "},
		{line: "list", says: "a v1.37.1 runs\nb v1.36.3 does not run\n"},
		{line: "kill b", fails: "kill b: it does not run: start it first", kind: KindNotRun},
		{line: "kill z", fails: `no server "z"`, kind: KindNotRun},
		{line: "start b v1.35.4", fails: "start b as v1.35.4: there is no v1.35.4", kind: KindNotRun},
		{line: "start b", says: "start b\ndone in "},
		{line: "start b 1.36", fails: "1.36", kind: KindUsage},
		{line: "lists", fails: `unknown action "lists"`, kind: KindUsage},
		{line: "kill", fails: "write kill SERVER", kind: KindUsage},
	} {
		out, err := h.act(t, c.line)
		if !strings.HasPrefix(out, c.says) || (err == nil) != (c.fails == "") {
			t.Errorf("%s says %q, error %v; want %q", c.line, out, err, c.says)
		} else if err != nil && (!strings.Contains(err.Error(), c.fails) || KindOf(err) != c.kind) {
			t.Errorf("%s: error %v of kind %d; want %q of kind %d", c.line, err, KindOf(err), c.fails, c.kind)
		}
	}
	h.end()
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(h.dir.File(socketName)); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	for _, line := range []string{"list", "replace b v1.37.1"} {
		if _, err := h.act(t, line); err == nil || !strings.Contains(err.Error(), "holds no cluster: start a run with --keep") {
			t.Errorf("%s, when the run is over: %v", line, err)
		}
	}
}

// The executor carries out one step at a time.
func TestStepsWaitForTheirTurn(t *testing.T) {
	h := holdObedient(t)
	h.during = func(context.Context) {
		if h.turn.TryLock() {
			t.Error("another step could be carried out beside this one")
		}
	}
	var all sync.WaitGroup
	for _, server := range []string{"a", "b"} {
		all.Go(func() {
			if _, err := h.act(t, "kill "+server); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if out, _ := h.act(t, "list"); strings.Count(out, "does not run") != 2 {
		t.Errorf("on is:\n%s", out)
	}
}

// The end of the run ends the active step and waits for it. The client that asked for the step gets
// an answer.
func TestTheEndOfARunEndsItsSteps(t *testing.T) {
	h := holdObedient(t)
	silent, err := h.dir.dial(t.Context()) // a client that sends no request
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	over := false
	h.during = func(ctx context.Context) {
		h.end()
		<-ctx.Done()
		over = true
	}
	_, err = h.act(t, "kill a")
	if err == nil || !strings.Contains(err.Error(), "the run was ended meanwhile") {
		t.Errorf("the step says %v", err)
	}
	if err := <-h.ended; err != nil || !over {
		t.Errorf("error %v; the step was over: %v", err, over)
	}
}

// Only this program is expected at the socket. Other requests do no harm.
func TestARequestThatIsNone(t *testing.T) {
	h := holdObedient(t)
	for _, sent := range []string{"kill a", `{"step": 7}`, "", `{"step": {"action": "dance"}}`} {
		conn, err := h.dir.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, sent)
		if err == nil {
			err = conn.(*net.UnixConn).CloseWrite()
		}
		var a answer
		if err := errors.Join(err, json.NewDecoder(conn).Decode(&a)); err != nil || a.Error == "" {
			t.Errorf("%q is answered by %+v, error %v", sent, a, err)
		}
		_ = conn.Close()
	}
	if out, err := h.act(t, "list"); err != nil || strings.Count(out, " runs\n") != 2 {
		t.Errorf("on is %q, error %v", out, err)
	}
}

// If no socket can be made, a cluster is held without a socket.
func TestAClusterIsHeldWhereThereCanBeNoSocket(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said []string
	h := &held{status: func(format string, _ ...any) { said = append(said, format) }}
	called := false
	err := h.hold(ctx, Dir(filepath.Join(t.TempDir(), "absent")), func() error {
		called = true
		cancel()
		return nil
	})
	if err != nil || !called || !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "takes no steps") }) {
		t.Errorf("error %v, ready was called: %v, it said %q", err, called, said)
	}
	failed := errors.New("the outer half is gone")
	if err := h.hold(t.Context(), Dir(t.TempDir()), func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v, want %v", err, failed)
	}
}

// A client that waits for a step may stop waiting.
func TestWaitingForAStepCanBeInterrupted(t *testing.T) {
	h := holdObedient(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h.during = func(run context.Context) {
		cancel()
		<-run.Done()
	}
	err := h.dir.Act(ctx, []string{"kill", "a"}, silent)
	if err == nil || !strings.Contains(err.Error(), "a step that has begun goes on") {
		t.Errorf("it says %v", err)
	}
	h.end()
	<-h.ended
}
