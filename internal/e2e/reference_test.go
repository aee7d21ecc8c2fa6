package e2e

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

// These are the versions between which the reference proxy is tested: the versions of all other
// tests, and the oldest two with aggregated discovery of peers, whose servers do not remove their
// identity leases when they stop.
var (
	newPair = pair{"v1.36.3", "v1.37.1"}
	oldPair = pair{"v1.34.4", "v1.35.4"}
)

type pair struct{ from, to string }

// The reference proxy must satisfy everything that the kube-apiserver's own proxy violates
// (scenarios_test.go), in the smoke set or in every scenario.
func TestReference(t *testing.T) {
	for _, s := range scenarios.All() {
		if s.Limits.Allows(scenario.BackendLocal) && (*all || slices.Contains(s.Labels, "smoke")) {
			t.Run(s.Name, func(t *testing.T) { holds(t, s, newPair) })
		}
	}
}

// For the older pair, only the scenarios that start, stop and cut off servers are run, because
// these versions differ in what they publish about each other.
func TestReferenceBetweenOlderVersions(t *testing.T) {
	onlyWithAll(t)
	for _, name := range []string{"rolling-upgrade", "restart-during-partition", "peer-crash-with-alternative"} {
		t.Run(name, func(t *testing.T) {
			s, err := scenarios.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			holds(t, s, oldPair)
		})
	}
}

// holds checks that a scenario satisfies everything that the KEP demands, and that the run tests
// it.
func holds(t *testing.T, s scenario.Scenario, p pair) {
	t.Helper()
	needsCluster(t)
	needsVersions(t, p.from, p.to)
	r, report := runScenario(t, s.Name, "--subject", "reference", "--from", p.from, "--to", p.to)
	if slices.ContainsFunc(report.Invariants, ofNoProxy) {
		exits(t, r, fail)
	} else {
		exits(t, r, pass)
	}
	for _, i := range report.Invariants {
		about := slices.Contains(s.About, i.Name)
		switch {
		case ofNoProxy(i):
		case i.Outcome == invariant.OutcomePass:
		case i.Grade != invariant.GradeCore: // the proxy does not repeat a write that may have reached a peer, so Available is not promised
		case about || i.Outcome == invariant.OutcomeFail:
			t.Errorf("%s: %s, want a pass: %s", i.Name, i.Outcome, i.Reason)
			for _, e := range i.Evidence {
				t.Logf("%s, %d times: %s", i.Name, e.Count, e.Sentence)
			}
		}
	}
	passedOn(t, report)
	for _, f := range report.Faults {
		if !f.Evidence.Effective {
			t.Errorf("fault %d, %s, had no effect", f.ID, f.Detail)
		}
	}
}

// passedOn checks that the records of the servers were joined. Some requests must be recorded by
// two servers, and almost every answered request must be recorded by at least one. The records of
// requests that were in progress on a killed server are lost with it.
func passedOn(t *testing.T, report reports.RunReport) {
	t.Helper()
	v := verdict(t, report, "NoLoop")
	if v.Outcome != invariant.OutcomePass || v.Checked < 100 {
		t.Errorf("NoLoop: %s, %d requests were passed on, want at least 100", v.Outcome, v.Checked)
	}
	for _, f := range v.Facts {
		if f.Name != "answered operations without any server's account" {
			continue
		}
		if n, err := strconv.Atoi(strings.ReplaceAll(f.Value, ",", "")); err != nil || n > 5 {
			t.Errorf("%s: %s, want next to none", f.Name, f.Value)
		}
	}
}

// Every end of a run must end its servers.
func TestNothingOfTheReferenceStaysBehind(t *testing.T) {
	begun := begin(t, "3 servers ready", "--subject", "reference")
	begun.consistsOf(t, "1 etcd, 1 run, 1 sandboxed, 3 kube-apiserver-reference")
	begun.end(t, syscall.SIGKILL)
	nothingIsLeft(t, begun.dir)
}

// With the policy of the released proxy, or with its switch alone, the reference has finding 2 as
// that proxy has it. So it is the reference that answers, and by the policy of the flag.
func TestThePolicyOfTheReferenceDecides(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	for _, policy := range []string{"upstream-1.37", "reference,Routing.Subresources=false"} {
		t.Run(policy, func(t *testing.T) {
			// The simulator takes no flag of a server.
			_, report := scenarioAlone(t, "rolling-upgrade", "--subject", "reference", "--kube-apiserver-flag", "mixed-version-proxy-policy="+policy)
			back := func(e reports.Evidence) bool {
				f, _ := findings.For(scenario.SubjectBuiltin).Explain(e.Signature)
				return f.Number == 2
			}
			if v := verdict(t, report, "NoFalseNotFound"); !slices.ContainsFunc(v.Evidence, back) {
				t.Errorf("NoFalseNotFound: %s, want the violations of finding 2: %v", v.Outcome, v.Evidence)
			}
		})
	}
}
