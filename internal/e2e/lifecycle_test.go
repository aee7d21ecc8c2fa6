package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
	"k8s.io/client-go/discovery"

	"github.com/skewproof/skewproof/reports"
)

func TestNothingStaysBehind(t *testing.T) {
	for name, c := range map[string]struct {
		signal syscall.Signal
		twice  bool
		code   int
		tidy   bool // the harness could remove its files
	}{
		"Ctrl-C":       {syscall.SIGINT, false, inconclusive, true},
		"SIGTERM":      {syscall.SIGTERM, false, inconclusive, true},
		"Ctrl-C twice": {syscall.SIGINT, true, -1, false},
		"kill -9":      {syscall.SIGKILL, false, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			begun := begin(t, "3 servers ready", "--known")
			begun.consistsOf(t, wholeRun)
			if c.twice {
				must(t, begun.cmd.Process.Signal(c.signal))
				eventually(t, "it says that it is stopping", time.Minute, func() bool { return strings.Contains(begun.out.String(), stopping) })
			}
			if code := begun.end(t, c.signal); code != c.code {
				t.Errorf("exit code %d, want %d; output:\n%s", code, c.code, begun.out)
			}
			nothingIsLeft(t, begun.dir)
			keys, err := filepath.Glob(filepath.Join(begun.dir, "scratch", "*"))
			if err != nil || len(keys) > 0 {
				t.Errorf("left on disk: %v, error %v", keys, err)
			}
			if _, err := os.Stat(filepath.Join(begun.dir, "scratch")); c.tidy && err == nil {
				t.Error("the scratch directory was not removed")
			}
			said := begun.out.String()
			if c.signal != syscall.SIGKILL && strings.Count(said, stopping) != 1 {
				t.Errorf("it does not say once that it is stopping:\n%s", said)
			}
			if c.code == inconclusive && !strings.Contains(said, "INCONCLUSIVE: ") {
				t.Errorf("it has no verdict:\n%s", said)
			}
		})
	}
}

// stopping is what a run says after the first signal.
const stopping = "stopping; a second Ctrl-C ends everything at once"

// A run that is stopped after a violation, in the middle of a step, is judged by what it recorded.
func TestAStoppedRunIsJudged(t *testing.T) {
	begun := begin(t, "step 2 of")
	if code := begun.end(t, syscall.SIGINT); code != fail {
		t.Errorf("exit code %d, want %d; output:\n%s", code, fail, begun.out)
	}
	nothingIsLeft(t, begun.dir)
	report, err := reports.Read(filepath.Join(begun.dir, reports.JSONFile))
	must(t, err)
	if s := report.Standing(); !s.Violated || s.New || !s.Undecided || !strings.Contains(report.Metadata.Error, "the run was stopped") {
		t.Errorf("%+v, error %q; output:\n%s", s, report.Metadata.Error, begun.out)
	}
	exits(t, run(t, "judge", begun.dir, "--known"), inconclusive)
}

func TestKeepAndShell(t *testing.T) {
	if isInside() {
		everythingIsThere(t)
		return
	}
	needsTools(t, "nsenter")
	kept := begin(t, "The cluster stays up", "--keep")
	kept.again(t, time.Minute)
	if r := run(t, "shell", kept.dir, "--", "sh", "-c", "exit 7"); r.code != 7 {
		t.Errorf("exit code %d, want that of the command", r.code)
	}
	if code := kept.end(t, syscall.SIGTERM); code != pass && code != fail {
		t.Errorf("exit code %d, want that of the verdict; output:\n%s", code, kept.out)
	}
	nothingIsLeft(t, kept.dir)
	if r := run(t, "shell", kept.dir); r.code != notRun || !strings.Contains(r.output, "not running") {
		t.Errorf("entering a run that is over: exit code %d, output:\n%s", r.code, r.output)
	}
}

// everythingIsThere checks, inside the sandbox, what kubectl and toxiproxy's own client see.
func everythingIsThere(t *testing.T) {
	t.Helper()
	for server, want := range map[string]string{"a": "v1.37.1", "b": "v1.36.3", "c": "v1.36.3"} {
		client, err := discovery.NewDiscoveryClientForConfig(insideConfig(t, server))
		must(t, err)
		version, err := client.ServerVersion()
		if err != nil || version.GitVersion != want {
			t.Errorf("server %s says %v, error %v; want %s", server, version, err, want)
		}
	}
	proxies, err := toxiproxy.NewClient(strings.TrimPrefix(os.Getenv("TOXIPROXY_URL"), "http://")).Proxies()
	must(t, err)
	for _, link := range []string{"a-to-b", "b-to-a", "client-to-c", "c-to-etcd"} {
		if proxies[link] == nil || !proxies[link].Enabled {
			t.Errorf("link %s is not there or not enabled; there are %v", link, slices.Sorted(maps.Keys(proxies)))
		}
	}
}
