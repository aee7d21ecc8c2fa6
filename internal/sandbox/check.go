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

// Check finds out, in well under a second, whether this machine lets a run create its sandbox. hidden is a copy of this
// program that only calls [Rehearse], prints its error to standard error, and exits with 1 if there was one. Check appends the
// path of an empty scratch directory to hidden.Args and removes the directory afterwards; hidden.Stderr is replaced.
//
// The result is nil, an [UnsupportedError] when the namespaces could not be created, or an error with what hidden printed.
func Check(ctx context.Context, hidden Command) error {
	scratch, err := os.MkdirTemp("", "skewproof-check-")
	if err != nil {
		return fmt.Errorf("create a scratch directory to check the sandbox with: %w", err)
	}
	// Not RemoveAll: what hidden wrote went to its own mount, so whatever is in here is not ours to delete.
	defer func() { _ = os.Remove(scratch) }()
	var printed bytes.Buffer
	hidden.Args = append(append([]string(nil), hidden.Args...), scratch)
	hidden.Stderr = &printed
	code, err := Enter(ctx, hidden)
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

// Rehearse does everything that a run needs the kernel's permission for: it sets up the sandbox with scratch as its scratch
// directory, and creates one host. It is the inner half of [Check].
func Rehearse(scratch string) error {
	if err := Setup(Inside{Scratch: scratch}); err != nil {
		return err
	}
	host, err := NewHost("rehearsal", netip.MustParsePrefix("198.18.0.0/30")) // RFC 2544: never routed
	if err != nil {
		return err
	}
	host.Close()
	return nil
}
