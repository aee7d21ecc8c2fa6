package config

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/sim/recorded"
)

// own matches the pre-releases of Kubernetes itself. Others are of distributions, such as -gke.1.
var own = regexp.MustCompile(`^-(alpha|beta|rc)\.[0-9]+$`)

// Release returns the release of Kubernetes that a version stands for, out of those that are
// recorded, and a sentence if it is not the version itself. A version of a distribution stands for
// its base, a minor version for its newest patch, and a patch for the nearest one.
func Release(version string, known []string) (release, sentence string) {
	release = "v" + strings.TrimPrefix(version, "v")
	if !semver.IsValid(release) {
		return version, ""
	}
	release = strings.TrimSuffix(release, semver.Build(release))
	if p := semver.Prerelease(release); p != "" && !own.MatchString(p) {
		release = strings.TrimSuffix(release, p)
	}
	if release != "v"+strings.TrimPrefix(version, "v") {
		sentence = fmt.Sprintf("%s is a version of a distribution. The plan is for %s, on which it is based.", version, release)
	}
	if release == semver.MajorMinor(release) {
		newest := recorded.Nearest(release+".999", known)
		if newest == "" {
			return release, sentence
		}
		return newest, strings.TrimSpace(sentence + fmt.Sprintf(" %s names no patch. The plan is for %s.", version, newest))
	}
	if nearest := recorded.Nearest(release, known); nearest != "" && nearest != release {
		return nearest, strings.TrimSpace(sentence + " " + recorded.StandsIn(release, nearest, "skewproof plan --record "+release))
	}
	return release, sentence
}
