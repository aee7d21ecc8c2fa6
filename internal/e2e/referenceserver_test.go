package e2e

import (
	"os"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/invariant"
)

// The reference proxy inside kube-apiservers satisfies everything that the KEP demands of a proxy.
// (Before a request reaches it, the node authorizer of an older server has refused it: finding 46.)
// With the policy of the released proxy it fails as that one does. So it is this proxy that
// answers.
func TestReferenceInsideTheServers(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	var flags []string
	for _, version := range []string{newPair.from, newPair.to} {
		b, err := (&binaries.Store{Progress: os.Stderr}).Get(t.Context(), binaries.KubeAPIServerReference, version)
		must(t, err)
		flags = append(flags, "--binary", "kube-apiserver@"+version+"="+b.Path)
	}
	t.Run("reference", func(t *testing.T) {
		_, report := scenarioAlone(t, "rolling-upgrade", flags...)
		for _, i := range report.Invariants {
			if i.Grade == invariant.GradeCore && i.Outcome == invariant.OutcomeFail && (i.New > 0 || !slices.Equal(i.Findings, []int{46})) {
				t.Errorf("%s: %d NEW violations, findings %v, want none but 46: %s", i.Name, i.New, i.Findings, i.Reason)
			}
		}
		if v := verdict(t, report, "NoFalseNotFound"); v.Outcome != invariant.OutcomePass {
			t.Errorf("NoFalseNotFound: %s, want a pass", v.Outcome)
		}
		if v := verdict(t, report, "NoLoop"); v.Outcome != invariant.OutcomePass || v.Checked < 100 {
			t.Errorf("NoLoop: %s, %d requests were passed on, want at least 100", v.Outcome, v.Checked)
		}
	})
	t.Run("upstream-1.37", func(t *testing.T) {
		_, report := scenarioAlone(t, "rolling-upgrade", append(flags, "--kube-apiserver-flag", "mixed-version-proxy-policy=upstream-1.37")...)
		if v := verdict(t, report, "NoFalseNotFound"); v.Outcome != invariant.OutcomeFail || !slices.Contains(v.Findings, 2) {
			t.Errorf("NoFalseNotFound: %s, findings %v, want a violation that finding 2 explains", v.Outcome, v.Findings)
		}
	})
}
