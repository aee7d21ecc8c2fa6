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

// Check finds out, in well under a second, whether this machine allows a run to create its sandbox.
// try must re-execute this program so that it only calls [Try], prints the error to standard error,
// and exits with 1 if there is an error. Check appends the path of an empty scratch directory to
// try.Args, and removes the directory afterwards; it replaces try.Stderr.
//
// If the machine does not allow namespaces, the error is an [UnsupportedError]. Otherwise the error
// is the text that the program printed.
func Check(ctx context.Context, try Command) error {
	scratch, err := os.MkdirTemp("", "skewproof-check-")
	if err != nil {
		return fmt.Errorf("create a scratch directory to check the sandbox with: %w", err)
	}
	// Not RemoveAll: the program wrote to its own mount, so files in this directory would belong to
	// others.
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

// Try does everything for which a run needs the kernel's permission: it sets up the sandbox with
// the scratch directory, and creates one host. It is the inner half of [Check].
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
