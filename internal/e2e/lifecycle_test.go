package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// insideVariable tells a copy of this test binary that it runs inside a sandbox; insideSaid is what it says if all is well there.
const (
	insideVariable = "SKEWPROOF_E2E_INSIDE"
	insideSaid     = "every server and every link is there"
)

// output is a buffer that is written by a process and read by a test.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// begin starts a run and returns once the line has been seen.
func begin(t *testing.T, line string, args ...string) (cmd *exec.Cmd, out *output, dir string) {
	t.Helper()
	needsCluster(t)
	dir = filepath.Join(t.TempDir(), "run")
	out = &output{}
	cmd = command(t, nil, append([]string{"run", "quiet", "--out", dir}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("%q is said", line), 3*time.Minute, func() bool {
		if cmd.ProcessState == nil && strings.Contains(out.String(), line) {
			return true
		}
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Fatalf("skewproof ended too early:\n%s", out)
		}
		return false
	})
	return cmd, out, dir
}

// processesOf counts the machine's processes whose command line names the directory: those of the run.
func processesOf(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(dir)) {
			count++
		}
	}
	return count
}

func TestNothingStaysBehind(t *testing.T) {
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
		tidy   bool // the harness had the chance to tidy up files
	}{
		"Ctrl-C":  {syscall.SIGINT, notRun, true},
		"SIGTERM": {syscall.SIGTERM, notRun, true},
		"kill -9": {syscall.SIGKILL, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out, dir := begin(t, "3 servers ready")
			if got := processesOf(t, dir); got < 5 { // etcd, three servers, and the two halves of skewproof
				t.Fatalf("%d processes belong to the run: this test sees nothing", got)
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != c.code {
				t.Errorf("exit code %d, want %d; output:\n%s", code, c.code, out)
			}
			eventually(t, "no process of the run is left", 20*time.Second, func() bool { return processesOf(t, dir) == 0 })
			keys, err := filepath.Glob(filepath.Join(dir, "scratch", "*"))
			if err != nil || len(keys) > 0 {
				t.Errorf("left on disk: %v, error %v", keys, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "scratch")); c.tidy && err == nil {
				t.Error("the scratch directory was not removed")
			}
			if c.code == notRun && !strings.Contains(out.String(), "interrupted") {
				t.Errorf("it does not say that it was interrupted:\n%s", out)
			}
		})
	}
}

// While a run is under way nothing of it has an interface, or a route, that leads out of the machine; and the machine has no
// interface of it.
func TestARunHasNoWayOut(t *testing.T) {
	before := links(t, "/proc/self/net/dev")
	cmd, _, dir := begin(t, "3 servers ready")
	pids, err := exec.Command("pgrep", "-f", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	inspected := 0
	for _, pid := range strings.Fields(string(pids)) {
		if name, _ := os.ReadFile("/proc/" + pid + "/cmdline"); !bytes.Contains(name, []byte("kube-apiserver\x00")) && !bytes.Contains(name, []byte("inside\x00")) {
			continue
		}
		inspected++
		for _, link := range links(t, "/proc/"+pid+"/net/dev") {
			if link != "lo" && link != "eth0" && !strings.HasPrefix(link, "to-") {
				// The kernel adds idle tunnel devices to every new namespace where their modules are loaded.
				if !strings.HasPrefix(link, "tun") && !strings.HasSuffix(link, "0") {
					t.Errorf("process %s has an interface %s", pid, link)
				}
			}
		}
	}
	if inspected != 4 {
		t.Errorf("inspected %d processes, want the sandbox's first and three servers", inspected)
	}
	if during := links(t, "/proc/self/net/dev"); strings.Join(during, " ") != strings.Join(before, " ") {
		t.Errorf("the machine's interfaces were %v and are now %v", before, during)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
}

func links(t *testing.T, path string) []string {
	t.Helper()
	table, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range strings.Split(string(table), "\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

func TestKeepAndShell(t *testing.T) {
	cmd, out, dir := begin(t, "The cluster stays up", "--keep")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside := exec.Command(skewproof, "shell", dir, "--", self)
	inside.Env = append(os.Environ(), insideVariable+"=1")
	said, err := inside.CombinedOutput()
	if err != nil || !bytes.Contains(said, []byte(insideSaid)) {
		t.Errorf("inside the shell: %v\n%s", err, said)
	}
	if r := run(t, "shell", dir, "--", "sh", "-c", "exit 7"); r.code != 7 {
		t.Errorf("exit code %d, want that of the command", r.code)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != pass && code != fail {
		t.Errorf("exit code %d, want that of the verdict; output:\n%s", code, out)
	}
	eventually(t, "no process of the run is left", 20*time.Second, func() bool { return processesOf(t, dir) == 0 })
	if r := run(t, "shell", dir); r.code != notRun || !strings.Contains(r.output, "not running") {
		t.Errorf("entering a run that is over: exit code %d, output:\n%s", r.code, r.output)
	}
}

// insideTheShell runs inside the sandbox, started by TestKeepAndShell: what kubectl and toxiproxy's own client would do.
func insideTheShell() error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules() // KUBECONFIG, as kubectl reads it
	for server, want := range map[string]string{"a": "v1.37.1", "b": "v1.36.3", "c": "v1.36.3"} {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: server}).ClientConfig()
		if err != nil {
			return err
		}
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return err
		}
		version, err := client.ServerVersion()
		if err != nil || version.GitVersion != want {
			return fmt.Errorf("server %s says %v, error %w; want %s", server, version, err, want)
		}
	}
	proxies, err := toxiproxy.NewClient(strings.TrimPrefix(os.Getenv("TOXIPROXY_URL"), "http://")).Proxies()
	if err != nil {
		return err
	}
	for _, link := range []string{"a-to-b", "b-to-a", "client-to-c", "c-to-etcd"} {
		if proxies[link] == nil || !proxies[link].Enabled {
			return fmt.Errorf("link %s is not there or not enabled; there are %v", link, slices.Sorted(maps.Keys(proxies)))
		}
	}
	return nil
}
