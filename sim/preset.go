package sim

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
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
