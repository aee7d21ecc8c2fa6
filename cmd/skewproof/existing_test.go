package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoServers is a kubeconfig of two servers. Neither of them runs.
const twoServers = `apiVersion: v1
kind: Config
clusters:
- {name: a, cluster: {server: 'https://127.0.0.1:1'}}
- {name: b, cluster: {server: 'https://127.0.0.1:2'}}
users:
- {name: me, user: {token: secret}}
contexts:
- {name: a, context: {cluster: a, user: me}}
- {name: b, context: {cluster: b, user: me}}
`

// Servers of another owner get no harmful request. A command that would harm them is refused before
// it connects to any of them.
func TestExistingServersAreOnlyRead(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("kubeconfig", []byte(twoServers), 0o600); err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"quiet":                        "needs --kubeconfig",
		"nosuch --kubeconfig x":        "no scenario",
		"rolling-upgrade":              "step 2, replace a by v1.37.1, changes or harms the control plane",
		"peer-partition":               "step 2, cut, b→a, changes or harms",
		"quiet --subject builtin":      "--subject means nothing",
		"quiet --servers 2":            "--servers means nothing",
		"quiet --keep":                 "--keep means nothing",
		"quiet --qps -1":               "--qps",
		"quiet --contexts a":           "two servers at least",
		"many-peers":                   "2 servers: many-peers needs 50",
		"quiet --direct-contexts a,b":  "0 contexts",
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
	if code := codeOf(t, err); code != exitNotRun || !strings.Contains(err.Error(), `ask server "a" at https://127.0.0.1:1 for its version`) {
		t.Errorf("servers that do not answer: exit code %d, error %v", code, err)
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) != 1 {
		t.Errorf("it left %v, error %v", left, err)
	}
}
