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

// versionTimeout bounds one call of a binary for its version, also on machines that swap.
const versionTimeout = 30 * time.Second

// checkVersion asks the binary for its version. Build metadata in the answer is ignored (SemVer
// 2.0.0, section 10): distributions add it.
func checkVersion(ctx context.Context, ref Ref, path string) error {
	output, err := versionOutput(ctx, ref.Component, path)
	if err != nil {
		return fmt.Errorf("ask it for its --version: %w", err)
	}
	got := versionIn(ref.Component, output)
	if semver.Canonical(got) != string(ref.Version) {
		return fmt.Errorf("its --version says %q, not %s", firstLine(output), ref.Version)
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
		if err != nil && len(out) > 0 {
			err = fmt.Errorf("%w: %s", err, firstLine(string(out)))
		}
		return string(out), err
	}
}

// versionIn is the version in the output of a binary, such as "Kubernetes v1.37.1" or "etcd
// Version: 3.6.8"; "" if there is none. A commit may follow it.
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
