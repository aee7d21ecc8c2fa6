package local

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// alphaGates switch the proxy of 1.28 to 1.32 on: it works by StorageVersion objects, which an API of their own holds.
// Source: KEP-4020, "Alpha"; k8s.io/apiserver/pkg/features.
const alphaGates = "--feature-gates=" + scenario.Gate + "=true,StorageVersionAPI=true,APIServerIdentity=true"

// isAlpha reports whether a version has the proxy as it was designed for 1.28. The releases 1.33 have neither that one nor the next.
func isAlpha(version string) bool { return atLeast(version, "v1.28") && !atLeast(version, "v1.33") }

// CheckDesigns reports versions whose own proxies do not know each other: that of 1.28 to 1.32 tells its peers what it serves, and learns it of them,
// by StorageVersion objects, the one of today by discovery. It does not say whether a version has a proxy; its arguments do.
func CheckDesigns(from, to string) error {
	if isAlpha(from) == isAlpha(to) {
		return nil
	}
	return fmt.Errorf("%s and %s: the built-in proxy of v1.28 to v1.32 cannot be mixed with that of later versions, which learns otherwise what peers serve; "+
		"give two versions of one design (or one release, with an API switched off in some servers: --from v1.30.14+without.batch.v1 --to v1.30.14), or --subject %s",
		from, to, scenario.SubjectReference)
}

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
