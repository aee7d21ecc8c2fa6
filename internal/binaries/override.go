package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// OverrideEnv is the environment variable that [OverridesFromEnv] reads.
const OverrideEnv = "SKEWPROOF_BINARIES"

// Overrides are paths of the user's binaries, by component and version. Set, String and Type make
// it a pflag.Value for a repeatable flag. A nil Overrides can be read but not Set.
type Overrides map[Ref]string

// ParseOverride reads "kube-apiserver@v1.37.1=/path/to/it". [Overrides.Check] looks for the file.
// The error wraps [ErrBadRef] or [ErrBadVersion].
func ParseOverride(s string) (Ref, string, error) {
	name, path, ok := strings.Cut(s, "=")
	if !ok || path == "" {
		return Ref{}, "", fmt.Errorf("%w: %q: write COMPONENT@VERSION=PATH, such as %s@v1.37.1=./kube-apiserver",
			ErrBadRef, s, KubeAPIServer)
	}
	ref, err := ParseRef(name)
	return ref, path, err
}

// OverridesFromEnv reads the overrides in the value of [OverrideEnv], separated by commas; an empty
// value means none. The error wraps [ErrBadRef] or [ErrBadVersion].
func OverridesFromEnv(value string) (Overrides, error) {
	o := Overrides{}
	for field := range strings.SplitSeq(value, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		if err := o.Set(field); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Set adds one override as [ParseOverride] reads it. Two paths for one binary are an error.
func (o Overrides) Set(s string) error {
	ref, path, err := ParseOverride(s)
	if err != nil {
		return err
	}
	if old, ok := o[ref]; ok && old != path {
		return fmt.Errorf("%w: %s is said to be both %s and %s", ErrBadRef, ref, old, path)
	}
	o[ref] = path
	return nil
}

// String lists the overrides in a stable order, as [OverridesFromEnv] reads them.
func (o Overrides) String() string {
	var fields []string
	for ref, path := range o {
		fields = append(fields, ref.Name()+"="+path)
	}
	slices.Sort(fields)
	return strings.Join(fields, ",")
}

// Type returns the name of the value for a usage text.
func (o Overrides) Type() string { return "COMPONENT@VERSION=PATH" }

// Of returns the overrides for these binaries.
func (o Overrides) Of(refs []Ref) Overrides {
	some := Overrides{}
	for _, ref := range refs {
		if path, ok := o[ref]; ok {
			some[ref] = path
		}
	}
	return some
}

// Check returns an error if the file given for a binary does not exist or is not executable. It
// returns nil if no file is given. The version of the file is checked later, when the file is used.
func (o Overrides) Check(ref Ref) error {
	path, ok := o[ref]
	if !ok {
		return nil
	}
	if err := executable(path); err != nil {
		return unusable(ref, path, err)
	}
	return nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a file")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable: chmod +x it")
	}
	return nil
}

func unusable(ref Ref, path string, err error) error {
	return fmt.Errorf("%s: %w: the binary given for it, %s, cannot be used: %w", ref, ErrUnavailable, path, err)
}

func useOverride(ctx context.Context, ref Ref, path string, p progress) (Binary, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Binary{}, fmt.Errorf("%w: find the working directory: %w", ErrUnavailable, err)
	}
	b := Binary{
		Component: ref.Component, Version: string(ref.Version), Platform: platform(), Path: path, Origin: OriginPath, How: "given by the user",
	}
	says := ""
	err = executable(path)
	if err == nil {
		says, err = checkOwnVersion(ctx, ref, path)
	}
	if err == nil {
		b.SHA256, b.Size, err = hashFile(path)
	}
	if err != nil {
		return Binary{}, unusable(ref, path, err)
	}
	if semver.Canonical(versionIn(ref.Component, says)) != string(ref.Version) {
		p.say("the binary given for it says %q: it is taken, since it is a build of the same minor version", says)
	}
	return b, nil
}
