package e2e

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// The versions that the reference proxy is tested between: those of all other tests, and the oldest
// two with aggregated discovery of peers, whose servers leave their identity leases behind when
// they stop.
var (
	newPair = pair{"v1.36.3", "v1.37.1"}
	oldPair = pair{"v1.34.4", "v1.35.4"}
)

type pair struct{ from, to string }

// What the kube-apiserver's own proxy violates (scenarios_test.go) holds with the reference proxy
// in front: in the smoke set, or in every scenario.
func TestReference(t *testing.T) {
	for _, s := range scenarios.All() {
		if s.Limits.Allows(scenario.BackendLocal) && (*all || slices.Contains(s.Labels, "smoke")) {
			t.Run(s.Name, func(t *testing.T) { holds(t, s, newPair) })
		}
	}
}

// Of the older pair those scenarios that start, end and cut off servers: there the versions differ
// in what they tell of each other.
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

// holds checks that everything the KEP demands holds in a scenario, and that the run shows it.
func holds(t *testing.T, s scenario.Scenario, p pair) {
	t.Helper()
	needsCluster(t)
	needsVersions(t, p.from, p.to)
	r, report := runScenario(t, s.Name, "--subject", "reference", "--from", p.from, "--to", p.to)
	exits(t, r, pass)
	for _, i := range report.Invariants {
		about := slices.Contains(s.About, i.Name)
		switch {
		case i.Outcome == invariant.OutcomePass:
		case i.Grade != invariant.GradeCore: // a write that may have reached a peer is not repeated, so Available is not promised
		case about || i.Outcome == invariant.OutcomeFail:
			t.Errorf("%s: %s, want a pass: %s", i.Name, i.Outcome, i.Reason)
			for _, e := range i.Evidence {
				t.Logf("%s, %d times: %s", i.Name, e.Count, e.Sentence)
			}
		}
	}
	passedOn(t, report)
	tokensAreNotReviewed(t, r.dir)
	for _, f := range report.Faults {
		if !f.Evidence.Effective {
			t.Errorf("fault %d, %s, had no effect", f.ID, f.Detail)
		}
	}
	plan := s.Plan(scenario.Parameters{Servers: len(report.Servers), From: p.from, To: p.to, Bounds: history.DefaultBounds})
	for i, server := range report.Servers {
		if first := plan.Servers[i].Setup; first != nil && first.Proxy == scenario.Off {
			continue // it begins without a sidecar
		}
		if len(server.ProxyArgs) == 0 {
			t.Errorf("the report does not say how the sidecar of %s was started", server.Name)
		}
	}
}

// passedOn checks that the sidecars' accounts and those of the kube-apiservers were joined:
// requests were seen on their way through two servers, and as good as none was answered that no
// server tells of. Those that were under way when a server was killed are lost with it.
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

// A server is two processes with one life: whatever ends a run ends both.
func TestNothingOfASidecarStaysBehind(t *testing.T) {
	begun := begin(t, "3 servers ready", "--subject", "reference")
	begun.consistsOf(t, "1 etcd, 1 run, 1 sandboxed, 3 kube-apiserver, 3 proxy")
	begun.end(t, syscall.SIGKILL)
	nothingIsLeft(t, begun.dir)
}
