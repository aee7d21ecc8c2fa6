package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

func mustBe(t *testing.T, r reports.RunReport, outcome invariant.Outcome, names ...string) {
	t.Helper()
	for _, name := range names {
		if v := verdict(t, r, name); v.Verdict != outcome {
			t.Errorf("%s: %s (%s), want %s", name, v.Verdict, v.Reason, outcome)
		}
	}
}

// A cluster of one version has nothing to go wrong: whatever fails here is the harness.
func TestQuietClusterOfOneVersion(t *testing.T) {
	r, report := scenario(t, "quiet", "--from", "v1.37.1", "--to", "v1.37.1", "--strict")
	if r.code != pass {
		t.Errorf("exit code %d, want %d", r.code, pass)
	}
	mustBe(t, report, invariant.OutcomePass, "NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "Available", "NoCrash", "Converges")
	judgedAgain(t, r)
}

// judgedAgain checks that a saved run, judged and rendered again, gives the same reports to the byte.
func judgedAgain(t *testing.T, r result) {
	t.Helper()
	for _, command := range []string{"judge", "report"} {
		before := readReports(t, r.dir)
		again := run(t, command, r.dir, "--strict")
		if command == "report" {
			again = run(t, command, r.dir)
		}
		if again.code != r.code {
			t.Errorf("%s: exit code %d, want %d; output:\n%s", command, again.code, r.code, again.output)
		}
		for name, content := range readReports(t, r.dir) {
			if !bytes.Equal(content, before[name]) {
				t.Errorf("%s changed %s", command, name)
			}
		}
	}
}

func readReports(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{reports.HTMLFile, reports.JSONFile, reports.JUnitFile} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = content
	}
	return all
}

// The negative control: with the proxy switched off the harness must see what the proxy is there to prevent.
func TestRollingUpgradeWithoutTheProxy(t *testing.T) {
	r, report := scenario(t, "rolling-upgrade", "--subject", "none")
	if r.code != fail {
		t.Errorf("exit code %d, want %d", r.code, fail)
	}
	mustBe(t, report, invariant.OutcomeFail, "NoFalseNotFound", "DiscoveryComplete")
	mustBe(t, report, invariant.OutcomePass, "NoCrash")
}

func TestRollingUpgrade(t *testing.T) {
	_, report := scenario(t, "rolling-upgrade")
	mustBe(t, report, invariant.OutcomePass, "TrueNotFound", "NoLoop", "NoCrash")
	if got := report.Metadata.Operations; got < 5000 {
		t.Errorf("%d operations, want at least 5000", got)
	}
	onlyCSINodeStatus(t, report)
}

// onlyCSINodeStatus checks that the one defect known to show without a fault is the only one that core invariants found: requests are passed on by
// resource, and csinodes/status, which v1.37 added to a resource that v1.36 has, is not (docs/findings.md).
func onlyCSINodeStatus(t *testing.T, report reports.RunReport) {
	t.Helper()
	for _, i := range report.Invariants {
		if i.Grade != invariant.GradeCore {
			continue
		}
		for _, e := range i.Evidence {
			for _, resource := range e.Resources {
				if resource != "storage.k8s.io/v1/csinodes/status" {
					t.Errorf("%s, about %s: %s", i.Name, resource, e.Sentence)
				}
			}
		}
	}
}

func TestPeerPartition(t *testing.T) {
	_, report := scenario(t, "peer-partition")
	mustBe(t, report, invariant.OutcomePass, "NoLoop", "NoCrash")
	if v := verdict(t, report, "UnavailableOnPeerFailure"); v.Checked < 100 {
		t.Errorf("UnavailableOnPeerFailure judged %d requests, want at least 100", v.Checked)
	}
	noFailover(t, report)
	if len(report.Faults) != 2 {
		t.Fatalf("%d faults, want the two halves of a partition", len(report.Faults))
	}
	for _, f := range report.Faults {
		if !f.Evidence.Bit {
			t.Errorf("fault %d, %s, touched nothing", f.ID, f.Detail)
		}
	}
	onlyCSINodeStatus(t, report)
}

// noFailover checks that it was seen that a, cut off from b, asked b for what c could have served (docs/findings.md).
func noFailover(t *testing.T, report reports.RunReport) {
	t.Helper()
	v := verdict(t, report, "Available")
	for _, e := range v.Evidence {
		if e.Asked == "a" && strings.Contains(e.Sentence, "cut a→b") && strings.Contains(e.Sentence, "c (v1.36.3) serves it") {
			return
		}
	}
	t.Errorf("Available, %s: no evidence of a request that c could have served: %+v", v.Verdict, v.Evidence)
}

// The defect that the harness was first built to show: v1.37.1 forgets a peer that it cannot reach when another one restarts.
func TestRestartDuringPartition(t *testing.T) {
	r, report := scenario(t, "restart-during-partition")
	if r.code != fail {
		t.Errorf("exit code %d, want %d", r.code, fail)
	}
	v := verdict(t, report, "NoFalseNotFound")
	if v.Verdict != invariant.OutcomeFail || len(v.Evidence) == 0 {
		t.Fatalf("NoFalseNotFound: %s with %d pieces of evidence, want a failure that is shown", v.Verdict, len(v.Evidence))
	}
	found := false
	for _, e := range v.Evidence {
		found = found || e.Asked == "b" && strings.Contains(e.Sentence, "cut b→a")
	}
	if !found {
		t.Errorf("no evidence says that b, cut off from a, answered 404: %+v", v.Evidence)
	}
	page, err := os.ReadFile(filepath.Join(r.dir, reports.HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"restart c", "answered 404", "skewproof run restart-during-partition"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the report's page does not say %q", want)
		}
	}
}
