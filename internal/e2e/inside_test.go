package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/skewproof/skewproof/internal/cluster/local"
)

// A test that must run inside the sandbox of a run starts a copy of this test binary there, with
// 'skewproof shell'. Both halves are one test function: see isInside and again.
const (
	insideVariable    = "SKEWPROOF_E2E_INSIDE" // the program under test
	insideRunVariable = "SKEWPROOF_E2E_RUN"    // the directory of the run
)

// isInside reports whether this process is the half of a test that is inside a sandbox.
func isInside() bool { return os.Getenv(insideVariable) != "" }

// insideRun is the directory of the run in whose sandbox this process is.
func insideRun() string { return os.Getenv(insideRunVariable) }

// again runs the calling test once more, inside the sandbox of the run, and fails if that fails.
func (u *underWay) again(t *testing.T, limit time.Duration, args ...string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	words := []string{"shell", u.dir, "--", self, "-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=" + limit.String()}
	inside := exec.CommandContext(ctx, skewproof, append(words, args...)...)
	inside.Env = append(os.Environ(), insideVariable+"="+skewproof, insideRunVariable+"="+u.dir)
	inside.WaitDelay = time.Second // when this process ends, the sandbox ends everything that is still running in it
	said, err := inside.CombinedOutput()
	if err != nil || !bytes.Contains(said, []byte("--- PASS: "+t.Name())) {
		t.Errorf("inside the sandbox: %v\n%s", err, said) // the run itself is judged in any case
		return
	}
	t.Logf("inside the sandbox:\n%s", said)
}

// insideKeys are the keys of the run whose sandbox this process is in.
func insideKeys(name string) string { return filepath.Join(os.Getenv("SKEWPROOF_KEYS"), name) }

// insideConfig is the administrator's configuration for a server, in the form that kubectl reads.
func insideConfig(t *testing.T, server string) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(),
		&clientcmd.ConfigOverrides{CurrentContext: server}).ClientConfig()
	must(t, err)
	return config
}

// insideBinary is the run's kube-apiserver of a version.
func insideBinary(t *testing.T, version string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(insideRun(), "run.json"))
	must(t, err)
	var manifest struct {
		APIServers map[string]string `json:"apiservers"`
	}
	must(t, json.Unmarshal(content, &manifest))
	if manifest.APIServers[version] == "" {
		t.Fatalf("the run has no kube-apiserver %s, only %v", version, manifest.APIServers)
	}
	return manifest.APIServers[version]
}

// insideFiles are the files of a server that this test itself starts. The logs of this server
// belong to the test.
func insideFiles(t *testing.T) local.Files {
	return local.Files{Keys: os.Getenv("SKEWPROOF_KEYS"), Logs: t.TempDir()}
}
