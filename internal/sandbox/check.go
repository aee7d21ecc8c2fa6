package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// Check finds out, in well under a second, whether this machine lets a run create its sandbox. try
// re-executes this program to call [Try] only, print its error to standard error, and exit with 1
// if there was one. Check appends the path of an empty scratch directory to try.Args and removes
// the directory afterwards; try.Stderr is replaced.
//
// The error is an [UnsupportedError] without namespaces, and otherwise what the program printed.
func Check(ctx context.Context, try Command) error {
	scratch, err := os.MkdirTemp("", "skewproof-check-")
	if err != nil {
		return fmt.Errorf("create a scratch directory to check the sandbox with: %w", err)
	}
	// Not RemoveAll: the program wrote to a mount of its own, so files here are others'.
	defer func() { _ = os.Remove(scratch) }()
	var printed bytes.Buffer
	try.Args = append(append([]string(nil), try.Args...), scratch)
	try.Stderr = &printed
	code, err := Enter(ctx, try)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("check the sandbox: %w", ctx.Err())
	case err != nil || code == 0:
		return err
	}
	if text := strings.TrimSpace(printed.String()); text != "" {
		return errors.New(text)
	}
	return fmt.Errorf("check the sandbox: its first process exited with %d and did not say why", code)
}

// Try does all that a run needs the kernel's permission for: it sets up the sandbox with that
// scratch directory, and creates one host. It is the inner half of [Check].
func Try(scratch string) error {
	if err := Setup(Config{Scratch: scratch}); err != nil {
		return err
	}
	host, err := NewHost("trial", netip.MustParsePrefix("198.18.0.0/30")) // RFC 2544: never routed
	if err != nil {
		return err
	}
	host.Close()
	return nil
}
