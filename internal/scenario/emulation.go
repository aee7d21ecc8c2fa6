package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/release"
)

// A kube-apiserver can emulate its own minor version and the three before it, but no version before
// the first one in which the flag was on by default (--emulated-version, KEP-4330).
// --min-compatibility-version follows from the emulated version. Source: kubeEffectiveVersionFloors
// in k8s.io/apiserver/pkg/util/compatibility/version.go (v0.34 to v0.37), SetEmulationVersion in
// k8s.io/component-base/compatibility/version.go.
const (
	emulatesBack  = 3
	firstEmulated = 31
)

// MinorVersion returns the minor version in the form of --emulated-version: "1.36" for "v1.36.3".
func MinorVersion(version string) string {
	return strings.TrimPrefix(semver.MajorMinor(release.Of(version)), "v")
}

// Emulates reports whether a server with this setup emulates the minor version of a release.
func (s *Setup) Emulates(version string) bool {
	return s.Like() != "" && s.Like() == MinorVersion(version)
}

// Like returns the minor version that a server with this setup emulates, or "". s may be nil.
func (s *Setup) Like() string {
	if s == nil {
		return ""
	}
	return s.EmulatedVersion
}

// Emulable returns an error if a kube-apiserver of the version would refuse the emulated version.
// "" is its own version.
func Emulable(version, emulated string) error {
	if emulated == "" {
		return nil
	}
	like, ok := minorNumber(emulated)
	if !ok {
		return fmt.Errorf("emulated version %q: want a minor version without a patch, such as \"1.36\"", emulated)
	}
	own, ok := minorNumber(MinorVersion(version))
	switch oldest := max(own-emulatesBack, firstEmulated); {
	case !ok:
		return fmt.Errorf("emulated version %q: version %q of the server is none of Kubernetes", emulated, version)
	case own < firstEmulated:
		return fmt.Errorf("kube-apiserver %s emulates no other version: --emulated-version came with 1.%d", release.Of(version),
			firstEmulated)
	case like < oldest || like > own:
		return fmt.Errorf("kube-apiserver %s emulates 1.%d to 1.%d, and not %s", release.Of(version), oldest, own, emulated)
	}
	return nil
}

// minorNumber returns 36 for "1.36", and false for anything that is not a minor version.
func minorNumber(minor string) (int, bool) {
	number, ok := strings.CutPrefix(minor, "1.")
	n, err := strconv.Atoi(number)
	return n, ok && err == nil && n >= 0 && strconv.Itoa(n) == number
}

// SetUps lists every start of a server with its own setup, in the order of the plan.
func (plan *Plan) SetUps() []Server {
	var all []Server
	runs := map[string]string{}
	note := func(s Server) {
		runs[s.Name] = cmp.Or(s.Version, runs[s.Name])
		if s.Version = runs[s.Name]; s.Setup != nil {
			all = append(all, s)
		}
	}
	for _, s := range plan.Servers {
		note(s)
	}
	for _, s := range plan.Steps {
		if s.Action == Start || s.Action == Restart || s.Action == Replace {
			note(Server{Name: s.Server, Version: s.Version, Setup: s.Setup})
		}
	}
	return all
}
