package binaries

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
)

// versionTimeout bounds one call of a binary for its version. It is generous, for machines that
// swap.
const versionTimeout = 30 * time.Second

// checkVersion returns an error if the binary prints another version. It ignores build metadata
// (SemVer 2.0.0, section 10), because distributions add it.
func checkVersion(ctx context.Context, ref Ref, path string) error {
	says, got, err := version(ctx, ref.Component, path)
	if err == nil && semver.Canonical(got) != string(ref.Version) {
		err = fmt.Errorf("its --version says %q, not %s", says, ref.Version)
	}
	return err
}

// StandsFor reports whether a binary that prints one version may be used as another version. In
// SemVer a build of changed source is a pre-release ("v1.37.1-dirty", "v1.37.2-rc.0.12+8f3c2d1").
// It may be used as any version of its minor. Another release may not: then the path is probably
// wrong. StandsFor ignores build metadata.
func StandsFor(version, says string) bool {
	return semver.Canonical(says) == version || semver.Prerelease(says) != "" && semver.MajorMinor(says) == semver.MajorMinor(version)
}

// checkOwnVersion is checkVersion for a binary of the user. It returns the output of the binary.
func checkOwnVersion(ctx context.Context, ref Ref, path string) (says string, err error) {
	says, got, err := version(ctx, ref.Component, path)
	switch {
	case err != nil, StandsFor(string(ref.Version), got):
		return says, err
	case got == "":
		return says, fmt.Errorf("its --version says %q, not %s", says, ref.Version)
	case semver.MajorMinor(got) == semver.MajorMinor(string(ref.Version)):
		return says, fmt.Errorf("its --version says %q, not %s: it is another release; give it as %s@%s", says, ref.Version, ref.Component,
			semver.Canonical(got))
	default:
		return says, fmt.Errorf("its --version says %q, not %s: it is of another minor version", says, ref.Version)
	}
}

// Says returns the first line that a binary prints about its version, such as "Kubernetes v1.37.1".
func Says(ctx context.Context, b Binary) (string, error) {
	says, _, err := version(ctx, b.Component, b.Path)
	if err != nil {
		return "", fmt.Errorf("%s %s, %s: %w", b.Component, b.Version, b.Path, err)
	}
	return says, nil
}

// version returns the first line that the binary prints about its version, and the version in it.
func version(ctx context.Context, c Component, path string) (says, version string, err error) {
	output, err := versionOutput(ctx, c, path)
	if err != nil {
		return "", "", fmt.Errorf("ask it for its --version: %w", err)
	}
	return firstLine(output), versionIn(c, output), nil
}

// Takes returns an error in the words of a kube-apiserver if it refuses flags on its command line.
// It only reads them: with --version, no server starts. Flags that it lacks, values that it cannot
// parse and unknown feature gates are refused, and values that do not fit each other are not.
func Takes(ctx context.Context, path string, flags ...string) error {
	out, err := output(ctx, path, append(slices.Clone(programs[KubeAPIServer].ask), flags...)...)
	if err == nil || out == "" {
		return err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1] // warnings may precede it
	if _, quoted, ok := strings.Cut(last, " err="); ok {
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			last = unquoted
		}
	}
	return errors.New(strings.TrimPrefix(last, "Error: "))
}

// listed matches a flag in the output of --help.
var listed = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`)

// Flags returns the names of the flags that a kube-apiserver shows with --help. It hides some.
func Flags(ctx context.Context, path string) (names []string, err error) {
	out, err := output(ctx, path, "--help")
	for _, match := range listed.FindAllStringSubmatch(out, -1) {
		names = append(names, match[1])
	}
	return names, err
}

func versionOutput(ctx context.Context, c Component, path string) (string, error) {
	out, err := output(ctx, path, programs[c].ask...)
	if err != nil && ctx.Err() == nil && out != "" {
		err = fmt.Errorf("%w: %s", err, firstLine(out))
	}
	return out, err
}

// output returns what a program prints before it ends.
func output(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionTimeout,
		fmt.Errorf("no answer within %s", versionTimeout))
	defer cancel()
	for {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ETXTBSY) && ctx.Err() == nil {
			// Another goroutine forked while the file was still open for writing, and its child has
			// not yet reached exec, which closes it (golang.org/issue/22315).
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if err != nil && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return string(out), err
	}
}

// versionIn returns the version in the output of a binary, such as "Kubernetes v1.37.1" or "etcd
// Version: 3.6.8". A commit may follow the version. versionIn returns "" if there is no version.
func versionIn(c Component, output string) string {
	for line := range strings.Lines(output) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), programs[c].answer)
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			return "v" + strings.TrimPrefix(fields[0], "v")
		}
	}
	return ""
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
