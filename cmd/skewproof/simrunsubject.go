package main

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
)

// subjectAlpha is the design of 1.28, in every server whatever its version. Only the simulator has it.
const subjectAlpha = "alpha"

var simulatedSubjects = []string{scenario.SubjectBuiltin, scenario.SubjectReference, scenario.SubjectNone, subjectAlpha}

// maxSimulated is how many servers a simulated run may have.
const maxSimulated = 100

// checkSimulated refuses what means nothing in virtual time, and versions of which it is not known what they serve.
func (f *runFlags) checkSimulated(plan scenario.Plan) error {
	for _, name := range []string{"keep", "binary", "etcd"} {
		if f.given != nil && f.given(name) {
			return fmt.Errorf("--%s means nothing with --backend %s, which starts no program", name, backendSim)
		}
	}
	for _, v := range plan.Versions() {
		if _, err := recorded.Get(v); err != nil {
			return fmt.Errorf("--backend %s: %w", backendSim, err)
		}
		if _, _, err := simulatedPolicy(f.subject, v); err != nil {
			return err
		}
	}
	return nil
}

// simulatedPolicy is what the proxy of a server of that version does under a subject; on is false where it is switched off.
func simulatedPolicy(subject, version string) (policy proxy.Policy, on bool, err error) {
	switch subject {
	case scenario.SubjectNone:
		return policy, false, nil
	case scenario.SubjectReference:
		return proxy.Reference(), true, nil
	case subjectAlpha:
		return proxy.Alpha128(), true, nil
	}
	policy, err = presetOf(version)
	return policy, err == nil, err
}

// presetOf is the preset that behaves like the kube-apiserver of a version: the one named after its minor, and up to 1.32 the alpha design.
func presetOf(version string) (proxy.Policy, error) {
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
