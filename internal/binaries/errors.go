package binaries

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// ErrUnavailable is wrapped by every error of [Store.Get] about a binary whose name is correct:
// there is no such release, no network, no Go, no disk space, a read-only cache, or a wrong
// override.
var ErrUnavailable = errors.New("could not be had")

// errNoRelease is wrapped by the failure of an attempt that found no such version.
var errNoRelease = errors.New("no such release")

// errChecksum is wrapped by the failure of an attempt that got other bytes than the published ones.
var errChecksum = errors.New("WRONG CHECKSUM")

// Attempt is one origin from which a Store tried to get a binary, and why that failed.
type Attempt struct {
	Origin Origin // OriginDownload or OriginBuild
	Err    error
}

// UnavailableError lists all attempts. It wraps [ErrUnavailable] and each attempt's error.
type UnavailableError struct {
	Ref      Ref
	Attempts []Attempt // in the order in which they were made
}

// Error returns a headline, one or more lines for each attempt, and what the user can do.
func (e *UnavailableError) Error() string {
	var b strings.Builder
	headline := ErrUnavailable
	if slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return errors.Is(a.Err, errNoRelease) }) &&
		!slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return a.Origin == OriginBuild && !errors.Is(a.Err, errNoRelease) }) {
		headline = errNoRelease
	}
	fmt.Fprintf(&b, "%s: %v\n", e.Ref, headline)
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "  %s: %s\n", a.Origin, strings.ReplaceAll(a.Err.Error(), "\n", "\n    "))
	}
	fmt.Fprintf(&b, "  what can be done: ask for a version that exists (%s), go online, or give a binary of your own: %s=%s=PATH",
		programs[e.Ref.Component].releases, OverrideEnv, e.Ref.Name())
	return b.String()
}

// Unwrap makes errors.Is find [ErrUnavailable] and the errors of the attempts.
func (e *UnavailableError) Unwrap() []error {
	errs := []error{ErrUnavailable}
	for _, a := range e.Attempts {
		errs = append(errs, a.Err)
	}
	return errs
}

// diskFull reports whether the disk is full. Trying another origin does not help then.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// cacheError is an error of the cache itself. Every other origin would fail with it too.
type cacheError struct {
	dir string
	err error
}

func (e *cacheError) Error() string {
	switch {
	case diskFull(e.err):
		return fmt.Sprintf("no room on the disk of the cache %s: %v; a kube-apiserver takes about 120 MB, and building "+
			"one 3 GB more in Go's own caches: free some, or put the cache elsewhere with XDG_CACHE_HOME", e.dir, e.err)
	case errors.Is(e.err, os.ErrPermission), errors.Is(e.err, syscall.EROFS), errors.Is(e.err, syscall.ENOTDIR):
		return fmt.Sprintf("the cache %s cannot be written: %v; make it writable, or put the cache elsewhere with XDG_CACHE_HOME",
			e.dir, e.err)
	default:
		return fmt.Sprintf("the cache %s: %v", e.dir, e.err)
	}
}

func (e *cacheError) Unwrap() []error { return []error{ErrUnavailable, e.err} }

// errModuleProxy is wrapped if the module proxy could not be reached.
var errModuleProxy = errors.New("the Go module proxy cannot be reached (GOPROXY)")

// goMessages are known messages of the go command, and their causes. The first message that matches
// counts, because later messages follow from it. (The go command has no error codes. The texts are
// from cmd/go/internal/modfetch, modload and work.)
var goMessages = []struct {
	texts []string
	err   error
}{
	{[]string{"no space left on device", "disk quota exceeded"}, syscall.ENOSPC},
	{[]string{"SECURITY ERROR", "checksum mismatch"}, errChecksum},
	{[]string{"requires go >=", "toolchain not available"},
		errors.New("it needs a newer Go: install that, or allow go to fetch it with GOTOOLCHAIN=auto")},
	{[]string{"403 Forbidden"}, errors.New("the module proxy does not give it out, perhaps because there is no such release")},
	{[]string{"unrecognized import path"}, errors.New("the module proxy does not have it, and where it comes from cannot be reached")},
	{[]string{"dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake timeout", "GOPROXY=off",
		"network is unreachable"}, errModuleProxy},
	{[]string{"unknown revision", "404 Not Found", "410 Gone", "no matching versions"}, errNoRelease},
	{[]string{"signal: killed"}, errors.New("a part of the build was killed, most likely because memory ran out (it takes about 4 GB)")},
}

// causeOf returns the cause of a failure, according to the output of the go command. It is nil if
// the cause is unknown.
func causeOf(output string) error {
	for _, m := range goMessages {
		for _, text := range m.texts {
			if strings.Contains(output, text) {
				return m.err
			}
		}
	}
	return nil
}

func moduleError(module, output string) error {
	output = strings.TrimSpace(output)
	if cause := causeOf(output); cause != nil {
		return fmt.Errorf("get the module %s: %w: %s", module, cause, output)
	}
	return fmt.Errorf("get the module %s: %s", module, output)
}

// buildError is an error of the build. If a module is missing then, it is not the component's
// module: some Kubernetes releases lack one of their staging modules.
func buildError(ref Ref, err error) error {
	var failed *goError
	if !errors.As(err, &failed) {
		return err
	}
	cause := causeOf(failed.output)
	if errors.Is(cause, errNoRelease) {
		return fmt.Errorf("%s exists, but one of its modules was not published; another patch version may be "+
			"complete: %w", ref, err)
	}
	if cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
