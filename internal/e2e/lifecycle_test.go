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
)

func TestNothingStaysBehind(t *testing.T) {
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
		tidy   bool // the harness could remove its files
	}{
		"Ctrl-C":  {syscall.SIGINT, notRun, true},
		"SIGTERM": {syscall.SIGTERM, notRun, true},
		"kill -9": {syscall.SIGKILL, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			begun := begin(t, "3 servers ready")
			begun.consistsOf(t, wholeRun)
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
			if c.code == notRun && !strings.Contains(begun.out.String(), "interrupted") {
				t.Errorf("it does not say that it was interrupted:\n%s", begun.out)
			}
		})
	}
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
