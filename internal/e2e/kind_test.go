package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/reports"
)

// kindQPS is less than the load on local servers, because kubelets, controllers and two more etcd
// members use the same processors.
const kindQPS = "100"

// needsKind skips a test on a machine that cannot have a kind cluster, and says what is missing.
func needsKind(t *testing.T) {
	t.Helper()
	if _, err := kind.Check(t.Context(), []string{newPair.from, newPair.to}, 3); err != nil {
		t.Skip(err)
	}
}

// onKind runs a scenario on a kind cluster, and checks that the cluster leaves nothing behind.
func onKind(t *testing.T, name string, flags ...string) (result, reports.RunReport) {
	t.Helper()
	needsKind(t)
	before := leftovers(t)
	dir := filepath.Join(t.TempDir(), "run")
	r := run(t, append([]string{"run", name, "--backend", "kind", "--qps", kindQPS, "--out", dir}, flags...)...)
	r.dir = dir
	t.Logf("%s %s: exit code %d\n%s", name, strings.Join(flags, " "), r.code, r.output)
	if after := leftovers(t); !slices.Equal(before, after) {
		t.Errorf("clusters before %v, after %v: something was left", before, after)
	}
	report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	return r, report
}

func leftovers(t *testing.T) []string {
	t.Helper()
	all, err := kind.Leftovers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// keepsEvidence checks that a report contains the logs and states of the nodes.
func keepsEvidence(t *testing.T, r result) {
	t.Helper()
	for _, pattern := range []string{"kind/cluster.yaml", "logs/nodes/*/kubeadm/kubeadm.conf", "logs/nodes/*/kubeadm/kube-apiserver.yaml",
		"logs/nodes/*/kubelet.log", "logs/a.log", "logs/kind.log"} {
		if found, err := filepath.Glob(filepath.Join(r.dir, pattern)); err != nil || len(found) == 0 {
			t.Errorf("the run left no %s (%v)", pattern, err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(r.dir, "scratch", "*")); err != nil || len(found) > 0 {
		t.Errorf("the run left keys behind: %v (%v)", found, err)
	}
}

// The defect of finding 1 appears on nodes as it does without nodes: the restart of an unrelated
// server turns 503 into 404, and the cut has an effect. The core verdicts are those of real
// processes without nodes. The test ignores Available, because a machine that is busy with three
// nodes delays requests, and this is not a property of the proxy.
func TestRestartDuringPartitionOnKind(t *testing.T) {
	r, report := onKind(t, "restart-during-partition")
	exits(t, r, fail)
	verdicts(t, report, ignorantOnKind())
	effective(t, report, "cut")
	keepsEvidence(t, r)
}

// startOnKind starts a run, and returns when all its containers exist. kind is still setting them
// up then.
func startOnKind(t *testing.T, output *bytes.Buffer, dir string) *exec.Cmd {
	t.Helper()
	before := leftovers(t)
	cmd := command(t, output, "run", "quiet", "--backend", "kind", "--servers", "2", "--out", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two nodes and their load balancer exist", 2*time.Minute, func() bool {
		for _, name := range leftovers(t) {
			all, err := exec.CommandContext(t.Context(), "docker", "ps", "--quiet", "--filter", "name="+name).Output()
			if err == nil && bytes.Count(all, []byte("\n")) == 3 && !slices.Contains(before, name) {
				return true
			}
		}
		return false
	})
	return cmd
}

// Ctrl-C during kind's work must remove everything that kind has made so far.
func TestInterruptedOnKind(t *testing.T) {
	needsKind(t)
	before := leftovers(t)
	var output bytes.Buffer
	cmd := startOnKind(t, &output, filepath.Join(t.TempDir(), "run"))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != inconclusive || !strings.Contains(output.String(), "not every server was ready: the run was stopped") {
		t.Errorf("exit code %d, output:\n%s", code, output.String())
	}
	if after := leftovers(t); !slices.Equal(before, after) {
		t.Errorf("clusters before %v, after %v: something was left", before, after)
	}
}

// A killed run cannot remove its cluster or its keys. The test tells kind-clean the name of this
// cluster, because it must not remove others.
func TestKilledOnKindIsCleanedUpAfter(t *testing.T) {
	needsKind(t)
	before := leftovers(t)
	dir := filepath.Join(t.TempDir(), "run")
	var output bytes.Buffer
	cmd := startOnKind(t, &output, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	left := slices.DeleteFunc(leftovers(t), func(name string) bool { return slices.Contains(before, name) })
	keys := filepath.Join(dir, "scratch", "keys")
	if _, err := os.Stat(filepath.Join(keys, "ca.key")); err != nil || len(left) != 1 {
		t.Fatalf("left: %v, keys: %v; want one cluster and its keys", left, err)
	}
	if r := run(t, append([]string{"kind-clean"}, left...)...); r.code != pass || !strings.Contains(r.output, keys) {
		t.Errorf("kind-clean: exit code %d\n%s", r.code, r.output)
	}
	if _, err := os.Stat(keys); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its keys: %v, want them gone", err)
	}
	if after := leftovers(t); !slices.Equal(before, after) {
		t.Errorf("clusters before %v, after %v: something was left", before, after)
	}
}
