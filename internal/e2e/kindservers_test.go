package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// lives records the changes of the servers' states.
type lives struct {
	mu    sync.Mutex
	all   []history.Lifecycle
	start time.Time
}

func (l *lives) Now() history.Time { return time.Since(l.start) }

func (l *lives) Configuration(history.Configuration) {}

func (l *lives) Lifecycle(c history.Lifecycle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
}

// of returns the states of a server so far, in order.
func (l *lives) of(server string) (states []history.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.all {
		if c.Server == server {
			states = append(states, c.State)
		}
	}
	return states
}

// On nodes, the actions of scenarios on servers must be such that kubelets do not undo them and do
// not take long to notice them.
func TestServersOnKind(t *testing.T) {
	needsKind(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c, seen := startKind(ctx, t)

	must(t, c.KillServer(ctx, "a"))
	if answers(ctx, t, c, "a") || c.Serving("a") != 0 {
		t.Error("a answers after it was killed")
	}
	must(t, c.StartServer(ctx, "a", "v1.37.1"))
	if !answers(ctx, t, c, "a") || c.Serving("a") != 2 {
		t.Error("a does not answer after it was started again, as another version")
	}

	must(t, c.PauseServer(ctx, "a"))
	if answers(ctx, t, c, "a") {
		t.Error("a answers while it is paused")
	}
	must(t, c.ResumeServer(ctx, "a"))
	if !answers(ctx, t, c, "a") {
		t.Error("a does not answer after it was resumed")
	}

	// No step asked for this end, so it is a crash, and the kubelet's restart is another
	// incarnation.
	node := kind.Places(c.Name(), []history.Server{{Name: "a"}})[0].Node
	if out, err := exec.CommandContext(ctx, "docker", "exec", node, "pkill", "-KILL", "-x", "kube-apiserver").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "the kubelet has started server a again", 3*time.Minute, func() bool { return c.Serving("a") == 3 })

	must(t, c.ReplaceServer(ctx, "b", ""))
	want := []history.State{history.StateStarting, history.StateReady, history.StateKilled, history.StateStarting, history.StateReady,
		history.StatePaused, history.StateResumed, history.StateCrashed, history.StateStarting, history.StateReady}
	if got := seen.of("a"); !slices.Equal(got, want) {
		t.Errorf("a went through %v, want %v", got, want)
	}
	want = []history.State{history.StateStarting, history.StateReady, history.StateStopping, history.StateStopped, history.StateStarting, history.StateReady}
	if got := seen.of("b"); !slices.Equal(got, want) {
		t.Errorf("b went through %v, want %v", got, want)
	}

	t.Run("etcd cut off", func(t *testing.T) {
		cut, err := c.Inject(ctx, fault.Fault{Kind: fault.Cut, From: "a", To: fault.Etcd})
		must(t, err)
		if writes(ctx, t, c, "a", "while-cut-off") {
			t.Error("a wrote while it was cut off from its etcd member")
		}
		if !writes(ctx, t, c, "b", "meanwhile") {
			t.Error("b, whose way to etcd is open, did not write")
		}
		record, err := cut.Heal(ctx)
		must(t, err)
		if !record.Effective() {
			t.Errorf("the cut had no effect: %+v", record)
		}
		eventually(t, "server a accepts writes again", time.Minute, func() bool { return writes(ctx, t, c, "a", "after-heal") })
	})

	hops, err := c.Hops(seen.start)
	must(t, err)
	if !slices.ContainsFunc(hops, func(h history.Hop) bool { return h.Server == "a" && h.User == "admin" }) {
		t.Errorf("%d hops, and none tells what the administrator asked of a", len(hops))
	}
}

// startKind starts two nodes of the older version.
func startKind(ctx context.Context, t *testing.T) (*kind.Cluster, *lives) {
	t.Helper()
	found, err := kind.Check(ctx, []string{"v1.36.3", "v1.37.1"}, 2)
	must(t, err)
	name, err := kind.NewName()
	must(t, err)
	dir := t.TempDir()
	files := kind.Files{Keys: filepath.Join(dir, "keys"), Nodes: filepath.Join(dir, "nodes"), Logs: filepath.Join(dir, "logs")}
	for _, d := range []string{files.Keys, files.Nodes, files.Logs} {
		must(t, os.Mkdir(d, 0o700))
	}
	seen := &lives{start: time.Now()}
	c, err := kind.New(kind.Config{
		Name: name, Image: found.Image, Subject: scenario.SubjectBuiltin, Files: files, Recorder: seen, Status: t.Logf,
		Servers: []history.Server{{Name: "a", Version: "v1.36.3"}, {Name: "b", Version: "v1.36.3"}},
	})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	must(t, c.Start(ctx))
	return c, seen
}

// answers reports whether a server answers, within a few seconds, a request for which it needs no
// other server.
func answers(ctx context.Context, t *testing.T, c *kind.Cluster, server string) bool {
	t.Helper()
	attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client(t, c, server).Discovery().RESTClient().Get().AbsPath("/livez/ping").Do(attempt).Error() == nil
}

// writes reports whether an object can be created through a server within a few seconds.
func writes(ctx context.Context, t *testing.T, c *kind.Cluster, server, name string) bool {
	t.Helper()
	attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := client(t, c, server).CoreV1().ConfigMaps("default").Create(attempt, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	return err == nil
}

func client(t *testing.T, c *kind.Cluster, server string) *kubernetes.Clientset {
	t.Helper()
	config, err := c.Direct(server)
	must(t, err)
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	return clients
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
