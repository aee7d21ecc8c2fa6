package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
)

// A flag is reserved only in plans that set it, on each backend.
func TestOwnFlagsOfAPlan(t *testing.T) {
	local, kind := scenario.BackendLocal, scenario.BackendKind
	for _, c := range []struct{ scenario, backend, flag, want string }{
		{"quiet", local, "goaway-chance=0.01", ""},
		{"quiet", local, "shutdown-delay-duration=20s", ""},
		{"quiet", local, "emulated-version=1.36", ""},
		{"rolling-upgrade", local, "shutdown-delay-duration=20s,shutdown-watch-termination-grace-period=5s", ""},
		{"kubeadm-defaults", local, "shutdown-delay-duration=20s", ""},
		{"rolling-upgrade", kind, "shutdown-delay-duration=20s", ""},
		{"drain", local, "shutdown-delay-duration=20s", "starts server a with --shutdown-delay-duration=12s (serving for 12s"},
		{"quiet", local, "endpoint-reconciler-type=lease", ""},
		{"quiet", local, "anonymous-auth=false", ""},
		{"quiet", local, "secure-port=1", "at the address and port"},
		{"quiet", local, "secure_port=1", "at the address and port"},
		{"quiet", local, "feature_gates=AllBeta:false", `did you mean "AllBeta=false"?`},
		{"emulated-upgrade", local, "emulated_version=1.36", "emulating 1.36"},
		{"quiet", kind, "goaway-chance=0.01", ""},
		{"quiet", kind, "emulated-version=1.36", ""},
		{"quiet", kind, "endpoint-reconciler-type=none", ""},
		{"quiet", kind, "service-account-issuer=https://a.example", ""},
		{"quiet", kind, "anonymous-auth=false", "kubeadm's probes"},
		{"quiet", kind, "anonymous-auth=true", ""},
		{"quiet", kind, "etcd-servers=x", "its own etcd"},
		{"quiet", local, "service-account-issuer=a,service-account-issuer=b", ""},
		{"quiet", kind, "service-account-issuer=a,service-account-issuer=b", ""},
		{"old", kind, "service-account-issuer=a,service-account-issuer=b", "kubeadm of v1.35.4 takes each flag once"},
		{"emulated-upgrade", local, "emulated-version=1.36", "emulating 1.36"},
		{"emulated-upgrade", kind, "emulated-version=1.36", "emulating 1.36"},
		{"kubeadm-defaults", local, "feature-gates=AllBeta=false", "with the flags of kubeadm"},
		{"kubeadm-defaults", kind, "feature-gates=AllBeta=false", "with the flags of kubeadm"},
		{"reference-rollout", local, "mixed-version-proxy-policy=upstream-1.37", ""},
	} {
		s := Spec{Scenario: c.scenario, Backend: c.backend, APIServerFlags: strings.Split(c.flag, ",")}
		if c.scenario == "old" {
			s.Scenario, s.From, s.To = "quiet", "v1.35.4", "v1.36.3"
		}
		if c.scenario == "reference-rollout" {
			s.Subject = scenario.SubjectReference
		}
		_, err := s.Plan()
		if c.want == "" && err != nil || c.want != "" && (err == nil || KindOf(err) != KindUsage || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s on %s with %s: %v, want %q", c.scenario, c.backend, c.flag, err, c.want)
		}
	}
}

// A dry run asks the user's own kube-apiservers. Recordings answer for the others, and the output
// says what they do not know.
func TestTheDryRunAsksForOwnFlags(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	path := filepath.Join(dir, "kube-apiserver")
	// It refuses as a kube-apiserver does. The flag "hidden" is not in its --help.
	program := `#!/bin/sh
case "$*" in *--feature-gates=A=true*--emulated-version=1.36*) exit ;; esac
for f in "$@"; do
	case "$f" in
	--help) printf '      --goaway-chance float   The chance.\n  -v, --v Level   The level.\n'; exit ;;
	--version|--goaway-chance=0.01|--hidden|--emulated-version=1.36) ;;
	--feature-gates=*) printf 'I1128 a warning\nE1128 run.go:72] "command failed" err="unrecognized feature gate: B"\n' >&2; exit 1 ;;
	*) echo "Error: unknown flag: ${f%%=*}" >&2; exit 1 ;;
	esac
done
`
	if err := os.WriteFile(path, []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SKEWPROOF_BINARIES", "kube-apiserver@v1.37.1="+path)
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"goaway-chance=0.01", "emulated-version=1.36"}, ""},
		{[]string{"hidden", "goaway-chance=0.01"}, "kube-apiserver v1.36.0 does not start with them: unknown flag: --hidden"},
		{[]string{"hidden", "goway-chance=0.01", "own"}, `goway-chance=0.01: kube-apiserver v1.37.1 refuses it: unknown flag: --goway-chance: did you mean "goaway-chance"?`},
		{[]string{"nonsense", "own"}, "nonsense: kube-apiserver v1.37.1 refuses it: unknown flag: --nonsense"},
		{[]string{"feature-gates=A=true", "hidden", "emulated-version=1.36", "own"}, ""},
		{[]string{"feature-gates=B=true", "own"}, "refuses it: unrecognized feature gate: B"},
	} {
		// v1.36.0 is not recorded. With the last flag both versions are programs of the user's own.
		spec := Spec{Scenario: "quiet", From: "v1.36.0", APIServerFlags: c.flags}
		if own := len(c.flags) - 1; c.flags[own] == "own" {
			spec.From, spec.APIServerFlags = "v1.37.1", c.flags[:own]
		}
		var out bytes.Buffer
		p, err := spec.Plan()
		if err == nil {
			err = p.DryRun(t.Context(), &out)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || KindOf(err) != KindUsage || !strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.flags, err, c.want)
		}
		if said := strings.Contains(out.String(), "Those of v1.36.3 stand in"); c.want == "" && said != (spec.From == "v1.36.0") {
			t.Errorf("%q: the output says that a recording stands in: %t\n%.300s", c.flags, said, out.String())
		}
	}
}
