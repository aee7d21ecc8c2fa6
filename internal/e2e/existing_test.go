package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// A control plane that the test keeps running plays the servers of another owner. The run judges it
// by its answers. The audit logs must show that the run only read from it.
func TestServersThatRunAlready(t *testing.T) {
	needsTools(t, "nsenter")
	kept := begin(t, "The cluster stays up", "--keep", "--subject", "reference")
	dir := filepath.Join(t.TempDir(), "existing")
	before := time.Now()
	judge := skewproof + ` run %s --backend existing --kubeconfig "$KUBECONFIG" --contexts a,b,c --out ` + dir
	judged := run(t, "shell", kept.dir, "--", "sh", "-c", fmt.Sprintf(judge, "quiet"))
	exits(t, judged, pass)
	report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, judged.output)
	}
	for name, want := range map[string]invariant.Outcome{
		"NoFalseNotFound": invariant.OutcomePass, "TrueNotFound": invariant.OutcomePass, "DiscoveryDeterministic": invariant.OutcomePass,
		"DiscoveryComplete": invariant.OutcomePass, "DiscoveryAccessible": invariant.OutcomePass, "Converges": invariant.OutcomePass,
		// A run has no access to logs and processes of other people's servers.
		"NoLoop": invariant.OutcomeInconclusive, "IdentityPreserved": invariant.OutcomeInconclusive,
		"WritesOnce": invariant.OutcomeInconclusive, "NoCrash": invariant.OutcomeInconclusive,
	} {
		if v := verdict(t, report, name); v.Outcome != want {
			t.Errorf("%s: %s (%s), want %s", name, v.Outcome, v.Reason, want)
		}
	}
	onlyRead(t, kept.dir, before)
	refused := run(t, "shell", kept.dir, "--", "sh", "-c", fmt.Sprintf(judge, "rolling-upgrade")+"-2")
	exits(t, refused, usage)
	kept.end(t, syscall.SIGINT)
	nothingIsLeft(t, kept.dir)
}

// Servers that run their own proxies say so, and then findings explain what they do wrong. A server
// that no context names is named by the run, which then blames nobody for what it does not know.
func TestServersThatRunAlreadySayWhoseProxyTheyHave(t *testing.T) {
	onlyWithAll(t)
	needsTools(t, "nsenter")
	kept := begin(t, "The cluster stays up", "--keep", "--no-load", "--at", "0")
	judge := func(contexts string, code int, words string) reports.RunReport {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "existing")
		judged := run(t, "shell", kept.dir, "--", "sh", "-c", skewproof+
			` run quiet --backend existing --kubeconfig "$KUBECONFIG" --known --contexts `+contexts+` --out `+dir)
		report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
		if err != nil {
			t.Fatalf("%v; it said:\n%s", err, judged.output)
		}
		exits(t, judged, code)
		if !strings.Contains(judged.output, words) || report.Metadata.Subject != "builtin" {
			t.Errorf("subject %s; it does not say %q:\n%s", report.Metadata.Subject, words, judged.output)
		}
		return report
	}
	if v := verdict(t, judge("a,b,c", pass, "is on: a, b, c"), "NoFalseNotFound"); v.Outcome != invariant.OutcomeFail {
		t.Errorf("NoFalseNotFound: %s; want that it fails, because of finding 2", v.Outcome)
	}
	judge("a,b", inconclusive, "servers that no context names: c")
	kept.end(t, syscall.SIGINT)
	nothingIsLeft(t, kept.dir)
}

// onlyRead checks the audit logs of a run for the requests of its administrator since then. All
// requests from outside are sent as this administrator.
func onlyRead(t *testing.T, dir string, since time.Time) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*-audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, path := range logs {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e auditv1.Event
			if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != "admin" || e.RequestReceivedTimestamp.Time.Before(since) {
				continue // the last line may be incomplete
			}
			switch e.Verb {
			case "get", "list", "watch":
				reads++
			default:
				t.Errorf("%s: %s %s", filepath.Base(path), e.Verb, e.RequestURI)
			}
		}
		if err := lines.Err(); err != nil {
			t.Errorf("read %s: %v", path, err)
		}
		_ = file.Close()
	}
	if reads < 1000 {
		t.Errorf("the audit logs of %d servers tell of %d requests that read: this test would prove nothing", len(logs), reads)
	}
}
