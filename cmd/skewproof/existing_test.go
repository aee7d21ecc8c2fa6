package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/reports"
)

// twoServers returns a kubeconfig of two servers. Neither of them runs.
func twoServers(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../internal/cluster/existing/testdata/two-servers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Servers of another owner get no harmful request. A command that would harm them is refused before
// it connects to any of them.
func TestExistingServersAreOnlyRead(t *testing.T) {
	content := twoServers(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("kubeconfig", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"quiet":                        "needs --kubeconfig",
		"nosuch --kubeconfig x":        "no scenario",
		"rolling-upgrade":              "step 2, replace a by v1.37.1, changes or harms the control plane",
		"peer-partition":               "step 2, cut, b→a, changes or harms",
		"quiet --subject reference":    `--subject "reference": the backend existing has external, builtin`,
		"quiet --servers 2":            "--servers means nothing",
		"quiet --keep":                 "--keep means nothing",
		"quiet --qps -1":               "--qps",
		"quiet --contexts a":           "two servers at least",
		"many-peers":                   "2 servers: many-peers needs 50",
		"quiet --contexts a,b --etcd=": "--etcd means nothing",
	} {
		args := append([]string{"run"}, strings.Fields(words)...)
		if !strings.Contains(words, "kubeconfig") && want != "needs --kubeconfig" {
			args = append(args, "--kubeconfig", "kubeconfig")
		}
		_, err := call(t, append(args, "--backend", "existing")...)
		if code := codeOf(t, err); code != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d, error %v; want %d and %q", words, code, err, exitUsage, want)
		}
	}
	for file, want := range map[string]string{"nothing": "no such file", "/etc/passwd": "/etc/passwd is not a kubeconfig"} {
		_, err := call(t, "run", "quiet", "--backend", "existing", "--kubeconfig", file)
		if code := codeOf(t, err); code != exitNotRun || !strings.Contains(err.Error(), want) {
			t.Errorf("--kubeconfig %s: exit code %d, error %v; want %d and %q", file, code, err, exitNotRun, want)
		}
	}
	_, err := call(t, "run", "quiet", "--backend", "existing", "--kubeconfig", "kubeconfig")
	if code := codeOf(t, err); code != exitNotRun || !strings.Contains(err.Error(), `ask server "a" at https://127.0.0.1:1 for /api: `) {
		t.Errorf("servers that do not answer: exit code %d, error %v", code, err)
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) != 1 {
		t.Errorf("it left %v, error %v", left, err)
	}
}

// A run on servers of another owner that is stopped is judged by what it recorded, too.
func TestAStoppedRunOnExistingServersIsJudged(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var asked atomic.Int64
	var ca []byte // of all test servers
	serve := func(version string) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/version":
				fmt.Fprintf(w, `{"gitVersion":%q}`, version)
			case r.URL.Path == "/api":
				fmt.Fprint(w, `{"kind":"APIVersions"}`)
			case r.URL.Path == "/readyz":
			case asked.Add(1) > 30:
				stop(engine.ErrStopped)
				fallthrough
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(server.Close)
		ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		return server.URL
	}
	older, newer := serve("v1.36.3"), serve("v1.37.1")
	content := strings.NewReplacer("https://127.0.0.1:1", newer, "https://127.0.0.1:2", older,
		"server:", "certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca)+", server:").Replace(twoServers(t))
	dir := filepath.Join(t.TempDir(), "run")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"run", "quiet", "--backend", "existing", "--kubeconfig", kubeconfig, "--qps", "100", "--out", dir})
	root.SetOut(&out)
	root.SetErr(&progress)
	if err := root.ExecuteContext(ctx); exitCodeOf(err) != exitInconclusive || !strings.Contains(progress.String(), "the run was stopped; the report covers") {
		t.Errorf("it ends with %v:\n%s%s", err, &progress, &out)
	}
	report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil || !strings.HasSuffix(report.Metadata.Error, ": the run was stopped") || report.Metadata.Operations == 0 {
		t.Errorf("%+v, error %v", report.Metadata, err)
	}
}
