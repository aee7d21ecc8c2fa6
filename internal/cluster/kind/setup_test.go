package kind

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// given is the value of each argument that a kube-apiserver gets beside kubeadm's.
func given(t *testing.T, subject string, setup *scenario.Setup) map[string]string {
	t.Helper()
	arguments, err := APIServerArguments("v1.36.3", subject, setup, history.OwnFlags{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, a := range arguments {
		all[a.Name] = a.Value
	}
	return all
}

func TestArgumentsOfAServerWithASetup(t *testing.T) {
	const on, off = scenario.Gate + "=true", scenario.Gate + "=false"
	for name, c := range map[string]struct {
		subject string
		setup   scenario.Setup
		want    map[string]string // "" is that it is not given
	}{
		// kube-apiserver refuses to start with an authority for peers whose gate is off.
		"switched off":                {scenario.SubjectBuiltin, scenario.Setup{Proxy: scenario.Off}, map[string]string{"feature-gates": off, "peer-ca-file": ""}},
		"on while the others are off": {scenario.SubjectNone, scenario.Setup{Proxy: scenario.On}, map[string]string{"feature-gates": on, "peer-ca-file": pkiDir + "/ca.crt"}},
		"a reference switched off":    {scenario.SubjectReference, scenario.Setup{Proxy: scenario.Off}, map[string]string{"feature-gates": off, local.PolicyFlag: ""}},
		"as kubeadm sets it up": {scenario.SubjectBuiltin, scenario.Setup{Flags: scenario.FlagsKubeadm}, map[string]string{
			"feature-gates": "", "peer-ca-file": "", "requestheader-uid-headers": "", "runtime-config": "api/all=true",
		}},
		"a reference as kubeadm sets it up": {scenario.SubjectReference, scenario.Setup{Flags: scenario.FlagsKubeadm}, map[string]string{
			"feature-gates": on, "peer-ca-file": pkiDir + "/ca.crt", local.PolicyFlag: "reference",
		}},
		"as kubeadm sets it up, where there shall be no proxy": {scenario.SubjectNone, scenario.Setup{Flags: scenario.FlagsKubeadm}, map[string]string{"feature-gates": off}},
		"an older self": {scenario.SubjectBuiltin, scenario.Setup{EmulatedVersion: "1.35"}, map[string]string{
			"emulated-version": "1.35", "feature-gates": on, "peer-ca-file": pkiDir + "/ca.crt",
		}},
		"its own self": {scenario.SubjectBuiltin, scenario.Setup{Proxy: scenario.On}, map[string]string{"emulated-version": ""}},
	} {
		got := given(t, c.subject, &c.setup)
		for argument, want := range c.want {
			if got[argument] != want {
				t.Errorf("%s: --%s=%q, want %q", name, argument, got[argument], want)
			}
		}
	}
}

// kubeadm uses the same arguments for all servers, so these must be right for each. Arguments that
// only some servers have are in the patches of those servers.
func TestServersThatDifferHaveTheirArgumentsInPatches(t *testing.T) {
	c := mixed(scenario.SubjectReference, "v1.36.3", "v1.36.3")
	c.Nodes[1].Setup = &scenario.Setup{Proxy: scenario.Off}
	common, err := c.arguments()
	if err != nil || !slices.ContainsFunc(common, func(a Argument) bool { return a.Name == "runtime-config" }) ||
		slices.ContainsFunc(common, func(a Argument) bool { return a.Name == local.PolicyFlag }) {
		t.Errorf("for all: %v, %v; want all but --%s", common, err, local.PolicyFlag)
	}
	tree := c.Tree()
	on, off := filepath.Join("patches", c.PatchDir(c.Nodes[0])), filepath.Join("patches", c.PatchDir(c.Nodes[1]))
	if patch := tree[on+"/kube-apiserver2+json.yaml"]; !strings.Contains(patch, "value: --mixed-version-proxy-policy=reference}") {
		t.Errorf("with the proxy on: %q", patch)
	}
	if patch := tree[off+"/kube-apiserver0+strategic.yaml"]; !strings.Contains(patch, ReferenceImage+":v1.36.3") {
		t.Errorf("with the proxy off: %s", patch)
	}
	c.Nodes[0].Setup = c.Nodes[1].Setup
	if patch, some := c.Tree()["patches/"+c.PatchDir(c.Nodes[0])+"/kube-apiserver2+json.yaml"]; some {
		t.Errorf("equal servers have a patch for their common arguments: %s", patch)
	}
}

// A server that starts with another setup must lose the arguments of the setup before.
func TestASetupReplacesTheOneBefore(t *testing.T) {
	own := func(setup *scenario.Setup) func(*corev1.Container) {
		arguments, err := ownArguments("v1.36.3", scenario.SubjectReference, setup, history.OwnFlags{})
		if err != nil {
			t.Fatal(err)
		}
		return func(c *corev1.Container) { setUp(c, arguments) }
	}
	now := []byte(manifest)
	for _, c := range []struct {
		setup    *scenario.Setup
		has, not string
	}{
		{nil, "--mixed-version-proxy-policy=reference", "emulated"},
		{&scenario.Setup{EmulatedVersion: "1.35"}, "--emulated-version=1.35", ""},
		{nil, "--peer-ca-file=", "emulated"},
		{&scenario.Setup{Proxy: scenario.Off}, scenario.Gate + "=false", "--mixed-version-proxy-policy"},
	} {
		next, err := edit(now, "image", 2, own(c.setup))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(next); strings.Count(text, c.has) != 1 || c.not != "" && strings.Contains(text, c.not) || strings.Count(text, "--feature-gates=") != 1 {
			t.Errorf("%s: want %s once, and not %s, in\n%s", c.setup, c.has, c.not, text)
		}
		now = next
	}
}

// On some things of a node more depends than its peers.
func TestSetupsThatANodeCannotHaveAreNamed(t *testing.T) {
	for _, s := range []*scenario.Setup{nil, {Proxy: scenario.Off}, {Proxy: scenario.On, Flags: scenario.FlagsKubeadm}, {EmulatedVersion: "1.36"}} {
		if err := CheckSetup(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	err := CheckSetup(&scenario.Setup{Proxy: scenario.Off, Serving: scenario.CertificateExpired})
	if err == nil || !strings.Contains(err.Error(), "serving certificate: expired") || strings.Contains(err.Error(), "switched") {
		t.Errorf("got %v, want an error that names the certificate, and it alone", err)
	}
}
