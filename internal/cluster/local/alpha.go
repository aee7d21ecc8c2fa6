package local

import (
	"slices"

	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/scenarios"
)

// alphaGates switch the proxy of 1.28 to 1.32 on: it works by StorageVersion objects, which an API of their own holds.
// Source: KEP-4020, "Alpha"; k8s.io/apiserver/pkg/features.
const alphaGates = "--feature-gates=" + scenarios.Gate + "=true,StorageVersionAPI=true,APIServerIdentity=true"

// isAlpha reports whether a version has the proxy as it was designed for 1.28. The releases 1.33 have neither that one nor the next.
func isAlpha(version string) bool { return atLeast(version, "v1.28") && !atLeast(version, "v1.33") }

// alphaArguments switch the proxy of 1.28 to 1.32 on. Its API is one of those that --runtime-config=api/all=true serves.
func alphaArguments(p Place, f Files) []string {
	return slices.Concat([]string{alphaGates}, p.peerCAArguments(f), p.peerAddressArguments())
}

// withoutArguments switch off what the version is to do without; see [release.Parse]. Given beside api/all=true, what names a group version
// decides.
// Source: k8s.io/apiserver/pkg/server/resourceconfig/helpers.go, MergeAPIResourceConfigs
func withoutArguments(version string) ([]string, error) {
	r, err := release.Parse(version)
	if err != nil || len(r.Without) == 0 {
		return nil, err
	}
	return []string{"--runtime-config=" + r.RuntimeConfig()}, nil
}
