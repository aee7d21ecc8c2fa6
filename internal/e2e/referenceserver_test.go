package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/invariant"
)

// The source of the kube-apiserver with the reference proxy meets the packages of each version.
func TestReferenceServerSource(t *testing.T) {
	for _, version := range []string{"v1.30.14", "v1.37.1"} {
		t.Run(version, func(t *testing.T) {
			src, err := binaries.Module(t.Context(), t.TempDir(), binaries.KubeAPIServerReference, version)
			must(t, err)
			for _, args := range [][]string{
				{"vet", "-mod=mod", ".", "./proxy/..."},
				{"test", "-mod=mod", "-race", "./proxy/apiserver"},
			} {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir, cmd.Env = src, append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=", "GOWORK=off")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("go %s with the packages of %s: %v\n%s", strings.Join(args, " "), version, err, out)
				}
			}
		})
	}
}

// The reference proxy inside kube-apiservers satisfies everything that the KEP demands. With the
// policy of the released proxy it fails as that one does, so it is this proxy that answers.
func TestReferenceInsideTheServers(t *testing.T) {
	needsCluster(t)
	var flags []string
	for _, version := range []string{newPair.from, newPair.to} {
		b, err := (&binaries.Store{Progress: os.Stderr}).Get(t.Context(), binaries.KubeAPIServerReference, version)
		must(t, err)
		flags = append(flags, "--binary", "kube-apiserver@"+version+"="+b.Path)
	}
	t.Run("reference", func(t *testing.T) {
		r, report := scenarioAlone(t, "rolling-upgrade", flags...)
		exits(t, r, pass)
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
