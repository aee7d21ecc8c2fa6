package sim

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
)

// PresetOf returns the preset that behaves like the kube-apiserver of a version. The preset is
// named after the minor version. Up to 1.32 it is the alpha design.
func PresetOf(version string) (proxy.Policy, error) {
	minor := semver.MajorMinor(version)
	if semver.Compare(minor, "v1.28") >= 0 && semver.Compare(minor, "v1.33") < 0 {
		return proxy.Alpha128(), nil
	}
	for _, p := range proxy.Presets() {
		if p.Name == "upstream-"+strings.TrimPrefix(minor, "v") {
			return p, nil
		}
	}
	return proxy.Policy{}, fmt.Errorf("subject %s: no policy behaves like the proxy of kube-apiserver %s; docs/policies.md lists those there are",
		scenario.SubjectBuiltin, version)
}

// SubjectAlpha is the design of 1.28, in every server of any version. Only the simulator has it.
const SubjectAlpha = "alpha"

// PolicyOf returns the policy of the proxy in a server of a version under a subject. on is false if
// the proxy is switched off.
func PolicyOf(subject, version string) (policy proxy.Policy, on bool, err error) {
	switch subject {
	case scenario.SubjectNone:
		return policy, false, nil
	case scenario.SubjectReference:
		return proxy.Reference(), true, nil
	case SubjectAlpha:
		return proxy.Alpha128(), true, nil
	}
	policy, err = PresetOf(version)
	return policy, err == nil, err
}

// SetupOf returns the setup of a simulator for a subject. A server without a policy ([PolicyOf])
// has its proxy switched off.
func SetupOf(subject string) Setup {
	return Setup{
		Version: recorded.Get, Reference: subject == scenario.SubjectReference,
		Policy: func(version string) (proxy.Policy, bool) {
			policy, on, _ := PolicyOf(subject, version)
			return policy, on
		},
	}
}
