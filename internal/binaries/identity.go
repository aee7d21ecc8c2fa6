package binaries

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
)

// versionTimeout bounds one call of a binary that is asked for its version. It prints constants: this is for the machine that is
// swapping, not for the binary.
const versionTimeout = 30 * time.Second

// checkVersion asks the binary itself. Build metadata in its answer is no difference (SemVer 2.0.0, section 10):
// distributions mark their builds so.
func checkVersion(ctx context.Context, ref Ref, path string) error {
	said, err := versionOutput(ctx, ref.Component, path)
	if err != nil {
		return fmt.Errorf("ask it for its --version: %w", err)
	}
	got := releaseNamed(ref.Component, said)
	if semver.Canonical(got) != string(ref.Version) {
		return fmt.Errorf("its --version says %q, not %s", firstLine(said), ref.Version)
	}
	return nil
}

func versionOutput(ctx context.Context, c Component, path string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionTimeout,
		fmt.Errorf("no answer within %s", versionTimeout))
	defer cancel()
	for {
		cmd := exec.CommandContext(ctx, path, programs[c].ask...)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ETXTBSY) && ctx.Err() == nil {
			// Another goroutine forked while the file was still open for writing, and its child has not yet
			// reached exec, which closes it (golang.org/issue/22315).
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if err != nil && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err != nil && len(out) > 0 {
			err = fmt.Errorf("%w: %s", err, firstLine(string(out)))
		}
		return string(out), err
	}
}

// releaseNamed finds the version in what a binary says of itself, such as "Kubernetes v1.37.1" or "etcd Version: 3.6.8". It is
// "" if there is none. A commit may stand behind it.
func releaseNamed(c Component, output string) string {
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
