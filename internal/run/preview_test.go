package run

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
)

// preview is the output of a preview, without a check of this machine.
func preview(t *testing.T, s Spec) (out, progress string) {
	t.Helper()
	p, err := s.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.Backend == scenario.BackendLocal {
		p.backend = able{p.backend}
	}
	var o, w bytes.Buffer
	if err := p.Preview(t.Context(), Console{Out: &o, Progress: &w}); err != nil {
		t.Fatal(err)
	}
	return o.String(), w.String()
}

// able is a backend that this machine has.
type able struct{ backend }

func (able) prepare(context.Context, *Plan) error { return nil }

func TestPreviewWithoutServers(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("SKEWPROOF_BINARIES", "")
	dir := filepath.Join(t.TempDir(), "run")
	out, progress := preview(t, Spec{Scenario: "quiet", Out: dir + "/", Keep: true})
	previous := -1
	for _, part := range []string{
		"Not in the cache yet: etcd v3.6.8, kube-apiserver v1.36.3, kube-apiserver v1.37.1.", "simulates quiet", "downloads kube-apiserver v1.37.1, or builds it",
		"downloads kube-apiserver v1.36.3, or builds it", "downloads etcd v3.6.8, or builds it", "carries out quiet",
	} {
		at := strings.Index(progress, part)
		if at <= previous {
			t.Errorf("no %q after the part before it, in:\n%s", part, progress)
		}
		previous = at
	}
	if !strings.HasPrefix(out, "Simulated, before the servers are there:\n") || !strings.Contains(out, "\nKNOWN: ") || !strings.Contains(out, dir+"-simulated") {
		t.Errorf("the summary is:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir+"-simulated", "report.html")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory of the run itself: %v", err)
	}
}

// A run that the simulator cannot carry out has a line that says why.
func TestPreviewOfWhatCannotBeSimulated(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	out, progress := preview(t, Spec{Scenario: "quiet", RuntimeConfig: new("")})
	if out != "" || !strings.Contains(progress, "Not simulated: --runtime-config means nothing with --backend sim") {
		t.Errorf("out %q, progress %q", out, progress)
	}
}

// If all servers are there, or none are needed, there is nothing to print.
func TestNoPreviewWithServers(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("SKEWPROOF_BINARIES", "kube-apiserver@v1.36.3=/bin/true,kube-apiserver@v1.37.1=/bin/true,etcd@v3.6.8=/bin/true")
	for _, backend := range []string{scenario.BackendLocal, scenario.BackendSim} {
		if out, progress := preview(t, Spec{Scenario: "quiet", Backend: backend}); out != "" || progress != "" {
			t.Errorf("backend %s: out %q, progress %q", backend, out, progress)
		}
	}
}
