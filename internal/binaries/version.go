package binaries

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// ErrBadVersion is wrapped by errors about a version that has not the form of a release's version,
// such as "1.37", "v1.37" or "latest". This is wrong usage: nothing was looked up.
var ErrBadVersion = errors.New("not the version of a release")

// ErrBadRef is wrapped by errors about the form of a component or an override. This is wrong usage:
// nothing was looked up.
var ErrBadRef = errors.New("wrong usage")

// DefaultEtcd is the etcd of a run unless the user asks for another. All kube-apiservers of a run
// use one etcd, so that only their own versions differ. Kubernetes v1.34 and later are released
// with etcd 3.6, and earlier ones work with it: their part of its API has not changed since 3.4.
const DefaultEtcd = "v3.6.8"

// OldestEtcd is the oldest etcd of a run.
const OldestEtcd = "v3.6.0"

// maxVersion bounds the length of a version, because it becomes part of a file name. Released
// versions are far shorter.
const maxVersion = 64

// Version is the version of a release: "v", major, minor and patch, and possibly a pre-release, as
// in "v1.37.1" and "v1.38.0-rc.1". [ParseVersion] makes it. The zero value is not a version.
type Version string

// ParseVersion checks that s has the form of a version of the component. It does not check whether
// that version was released. It refuses build metadata ("+k3s1"), because no release has any. The
// error wraps [ErrBadVersion].
func ParseVersion(c Component, s string) (Version, error) {
	if err := checkVersionForm(c, s); err != nil {
		return "", fmt.Errorf("%s %q: %w: %w", c, s, ErrBadVersion, err)
	}
	return Version(s), nil
}

func checkVersionForm(c Component, s string) error {
	known, ok := programs[c]
	if !ok {
		return errors.New("no such component")
	}
	major, example := known.major, known.example
	switch {
	case len(s) > maxVersion:
		return fmt.Errorf("it has more than %d characters; write it like %s", maxVersion, example)
	case semver.IsValid("v"+s) && semver.Canonical("v"+s) == "v"+s:
		return fmt.Errorf("did you mean %q?", "v"+s)
	case semver.IsValid(s) && semver.Build(s) != "":
		return fmt.Errorf("releases have no %q; write it like %s", semver.Build(s), example)
	case semver.IsValid(s) && semver.Canonical(s) != s:
		return fmt.Errorf("the patch version is missing; write it like %s", example)
	case !semver.IsValid(s):
		return fmt.Errorf("write it like %s", example)
	case semver.Major(s) != major:
		return fmt.Errorf("%s has no releases but %s.x.y", c, major)
	}
	return nil
}

// majorMinor returns "1" and "37" for v1.37.1.
func (v Version) majorMinor() (major, minor string) {
	major, minor, _ = strings.Cut(strings.TrimPrefix(semver.MajorMinor(string(v)), "v"), ".")
	return major, minor
}

// Ref names one binary: a component at a version.
type Ref struct {
	Component Component
	Version   Version
}

// NewRef checks both names. The error wraps [ErrBadRef] or [ErrBadVersion].
func NewRef(c Component, version string) (Ref, error) {
	c, err := ParseComponent(string(c))
	if err != nil {
		return Ref{}, err
	}
	v, err := ParseVersion(c, version)
	if err != nil {
		return Ref{}, err
	}
	return Ref{Component: c, Version: v}, nil
}

// ParseRef reads "kube-apiserver@v1.37.1". The error wraps [ErrBadRef] or [ErrBadVersion].
func ParseRef(s string) (Ref, error) {
	name, version, ok := strings.Cut(s, "@")
	if !ok {
		return Ref{}, fmt.Errorf("%w: %q: write COMPONENT@VERSION, such as %s@v1.37.1", ErrBadRef, s, KubeAPIServer)
	}
	return NewRef(Component(name), version)
}

// String is for people: "kube-apiserver v1.37.1".
func (r Ref) String() string { return string(r.Component) + " " + string(r.Version) }

// Name is the name that [ParseRef] reads: "kube-apiserver@v1.37.1".
func (r Ref) Name() string { return string(r.Component) + "@" + string(r.Version) }

// MarshalText writes [Ref.Name].
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.Name()), nil }

// UnmarshalText reads what MarshalText writes.
func (r *Ref) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRef(string(text))
	return err
}
