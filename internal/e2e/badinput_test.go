package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every wrong input gives an error that says what is wrong and what to do, and an exit code for
// this kind of error. It leaves nothing behind.
func TestBadInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "theirs"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	corrupt := t.TempDir()
	if err := os.WriteFile(filepath.Join(corrupt, "history.jsonl"), []byte("{\"run\":{\"schema\":\"skewproof/history/v1alpha1\"}}\n{nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no command":            {[]string{"dance"}, usage, "unknown command"},
		"an unknown flag":       {[]string{"run", "quiet", "--speed", "9"}, usage, "--speed"},
		"no scenario":           {[]string{"run"}, usage, "name a scenario"},
		"an unknown scenario":   {[]string{"run", "roling-upgrade"}, usage, `did you mean "rolling-upgrade"`},
		"an unknown backend":    {[]string{"run", "quiet", "--backend", "moon"}, usage, "--backend"},
		"an unknown subject":    {[]string{"run", "quiet", "--subject", "moon"}, usage, "--subject"},
		"half a version":        {[]string{"run", "quiet", "--to", "v1.37"}, usage, "patch version is missing"},
		"TO older than FROM":    {[]string{"run", "quiet", "--from", "v1.37.1", "--to", "v1.36.3"}, usage, "older than --from"},
		"one version for two":   {[]string{"run", "peer-partition", "--to", "v1.36.3"}, usage, "needs two versions"},
		"half an etcd version":  {[]string{"run", "quiet", "--etcd", "banana"}, usage, "--etcd"},
		"too few servers":       {[]string{"run", "restart-during-partition", "--servers", "2"}, usage, "needs 3 to"},
		"too many servers":      {[]string{"run", "quiet", "--servers", "1000"}, usage, "--servers"},
		"no load":               {[]string{"run", "quiet", "--qps", "0"}, usage, "--qps"},
		"a version between":     {[]string{"run", "quiet", "--from", "v1.33.5"}, usage, "v1.34"},
		"too old for the proxy": {[]string{"run", "quiet", "--subject", "reference", "--from", "v1.29.9"}, usage, "older than v1.30"},
		"OUT is a file":         {[]string{"run", "quiet", "--out", file}, notRun, "choose another with --out"},
		"OUT is in use":         {[]string{"run", "quiet", "--out", full}, usage, "not empty"},
		"OUT cannot be written": {[]string{"run", "quiet", "--out", "/proc/skewproof"}, notRun, "choose another with --out"},
		"a missing binary":      {[]string{"run", "quiet", "--binary", "kube-apiserver@v1.37.1=" + file + "-missing"}, usage, "file-missing"},
		"a false binary":        {[]string{"run", "quiet", "--binary", "kube-apiserver@v1.37.1=/bin/true"}, notRun, "v1.37.1"},
		"an unknown component":  {[]string{"binaries", "get", "v1.37.1", "--component", "kublet"}, usage, "unknown component"},
		"judge nothing":         {[]string{"judge", t.TempDir()}, notRun, "holds no run"},
		"judge nonsense":        {[]string{"judge", corrupt}, notRun, "line 2"},
		"report nothing":        {[]string{"report", t.TempDir()}, notRun, "report.json"},
		"enter nothing":         {[]string{"shell", t.TempDir()}, notRun, "--keep"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, c.args...)
			if r.code != c.code || !strings.Contains(r.output, c.want) {
				t.Errorf("exit code %d, want %d; output, want %q in it:\n%s", r.code, c.code, c.want, r.output)
			}
			if strings.Contains(r.output, "goroutine ") {
				t.Errorf("a panic reached the user:\n%s", r.output)
			}
		})
	}
}

func TestAVersionThatDoesNotExist(t *testing.T) {
	r := run(t, "binaries", "get", "v1.36.999")
	if r.code != notRun || !strings.Contains(r.output, "v1.36.999") || !strings.Contains(r.output, "what can be done") {
		t.Errorf("exit code %d, output:\n%s", r.code, r.output)
	}
}

// within runs skewproof after a shell line in a user namespace, in which an ordinary user may mount
// and set limits.
func within(t *testing.T, unshare []string, script string, args ...string) result {
	t.Helper()
	needsCluster(t)
	needsTools(t, "unshare", "setpriv")
	cmd := exec.CommandContext(t.Context(), "unshare", append(append(unshare, "sh", "-ec", script, skewproof), args...)...)
	out, err := cmd.CombinedOutput()
	return result{code: exitCode(t, err), output: string(out)}
}

func TestAFullDiskEndsTheRun(t *testing.T) {
	dir := t.TempDir()
	r := within(t, []string{"--user", "--map-root-user", "--mount"},
		"mount -t tmpfs -o size=2m tmpfs "+dir+"; exec \"$0\" \"$@\"", "run", "quiet", "--out", filepath.Join(dir, "run"))
	if r.code != notRun || !strings.Contains(r.output, "no space left") {
		t.Errorf("exit code %d, want %d; output:\n%s", r.code, notRun, r.output)
	}
}

func TestNoNamespacesIsSaidWithTheWayOut(t *testing.T) {
	// The inner shell is no longer root, and must not make a further user namespace.
	r := within(t, []string{"--user", "--map-root-user"},
		"echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" \"$@\"",
		"run", "quiet", "--out", filepath.Join(t.TempDir(), "run"))
	if r.code != notRun || !strings.Contains(r.output, "sysctl -w user.max_user_namespaces") {
		t.Errorf("exit code %d, want %d; output:\n%s", r.code, notRun, r.output)
	}
}
