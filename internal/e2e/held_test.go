package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/reports"
)

// onlyNewer is what only the newer of two servers serves.
const onlyNewer = "/apis/resource.k8s.io/v1/devicetaintrules"

// A user starts a cluster to try things, acts on it, and ends it from another shell. The cluster is
// started so that it ignores SIGINT, as shells start their background jobs.
func TestHeldCluster(t *testing.T) {
	if isInside() {
		heldInside(t, flag.Arg(0))
		return
	}
	needsTools(t, "nsenter")
	held := beginBy(t, []string{"sh", "-c", `trap "" INT && exec "$@"`, "sh"}, "The cluster stays up", "--keep", "--no-load", "--at", "1", "--servers", "2")
	held.again(t, time.Minute, "healthy")
	for _, c := range []struct{ step, says, then string }{
		{"list", "a v1.37.1 runs\nb v1.36.3 runs\n", ""},
		{"cut b a", "cut, b→a\ndone in ", "b→a cut"},
		{"list", `on: cut, b→a, labelled "cut b a"`, ""},
		{"heal cut b a", "heal: cut b a\ndone in ", "healed"},
		{"cut client b", "cut, client→b\ndone in ", "client→b cut"},
		{"heal", "heal: cut client b\ndone in ", "healed"},
		{"restart b", "restart b\ndone in ", "healed"},
		{"replace a v1.37.1", "replace a by v1.37.1\ndone in ", "a replaced"},
		{"replace b v1.37.1", "replace b by v1.37.1\ndone in ", "replaced"},
		{"kill a", "kill a\ndone in ", ""},
		{"list", "a v1.37.1 does not run\nb v1.37.1 runs\n", ""},
	} {
		r := run(t, append([]string{"step", held.dir}, strings.Fields(c.step)...)...)
		if r.code != 0 || !strings.Contains(r.output, c.says) {
			t.Fatalf("step %s: exit code %d, want it to say %q; output:\n%s", c.step, r.code, c.says, r.output)
		}
		if c.then != "" {
			held.again(t, time.Minute, c.then)
		}
	}
	if r := run(t, "step", held.dir, "restart", "a"); r.code != notRun || !strings.Contains(r.output, "restart a: it does not run: start it first") {
		t.Errorf("a step that cannot be carried out: exit code %d, output:\n%s", r.code, r.output)
	}
	here := t.TempDir()
	t.Chdir(here)
	if r := run(t, "shell", held.dir, "--", "pwd"); r.output != here+"\n" {
		t.Errorf("a shell that was called in %s starts in %s", here, r.output)
	}

	if code := held.end(t, syscall.SIGINT); code != inconclusive || !strings.Contains(held.out.String(), "INCONCLUSIVE: not judged: no load was sent (--no-load)") {
		t.Errorf("exit code %d, want %d; output:\n%s", code, inconclusive, held.out)
	}
	nothingIsLeft(t, held.dir)
	for _, name := range []string{"scratch", "step.sock", "sandbox.pid"} {
		if _, err := os.Lstat(filepath.Join(held.dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	h, err := history.ReadFile(filepath.Join(held.dir, "history.jsonl"))
	if err != nil || len(h.Operations) != 0 || len(h.Steps) != 1 {
		t.Errorf("%d operations and %d steps are recorded, error %v", len(h.Operations), len(h.Steps), err)
	}
	report, err := reports.Read(filepath.Join(held.dir, reports.JSONFile))
	if err != nil || report.Verdict.Outcome != invariant.OutcomeInconclusive || report.Metadata.Unjudged == "" {
		t.Errorf("verdict %+v, error %v", report.Verdict, err)
	}
	exits(t, run(t, "judge", held.dir), inconclusive)
	if r := run(t, "step", held.dir, "list"); r.code != notRun || !strings.Contains(r.output, "holds no cluster") {
		t.Errorf("a step when the run is over: exit code %d, output:\n%s", r.code, r.output)
	}
}

// heldInside sends requests to server b, inside the sandbox, in every possible way.
func heldInside(t *testing.T, when string) {
	status := func(way, path string) (code int) {
		config := insideConfig(t, way)
		config.Timeout = 10 * time.Second
		client, err := discovery.NewDiscoveryClientForConfig(config)
		must(t, err)
		client.RESTClient().Get().AbsPath(path).MaxRetries(0).Do(t.Context()).StatusCode(&code)
		return code
	}
	becomes := func(way, path string, want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s: %s answers %s with %d", when, way, path, want), 30*time.Second, func() bool { return status(way, path) == want })
	}
	switch when {
	case "healthy":
		becomes("b", onlyNewer, http.StatusOK)
		becomes("balancer", onlyNewer, http.StatusOK)
		becomes("b-direct", "/api/v1/namespaces/"+workload.Namespace, http.StatusNotFound) // no load was prepared
	case "b→a cut":
		becomes("b", onlyNewer, http.StatusServiceUnavailable)
		becomes("a", onlyNewer, http.StatusOK)
	case "client→b cut":
		becomes("b", "/version", 0)
		becomes("balancer", "/version", http.StatusOK)
		becomes("b-direct", "/version", http.StatusOK)
	case "healed":
		becomes("b", onlyNewer, http.StatusOK)
	case "replaced", "a replaced":
		server := map[string]string{"replaced": "b", "a replaced": "a"}[when]
		client, err := discovery.NewDiscoveryClientForConfig(insideConfig(t, server+"-direct"))
		must(t, err)
		version, err := client.ServerVersion()
		if err != nil || version.GitVersion != "v1.37.1" {
			t.Errorf("%s is %v, error %v", server, version, err)
		}
		becomes("b", onlyNewer, http.StatusOK)
	default:
		t.Fatalf("nobody looks when it is %q", when)
	}
}
