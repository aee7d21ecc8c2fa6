package binaries

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// ErrUnavailable is wrapped by every error of [Store.Get] that says that a well-named binary could not be had: no such
// release, no network, no Go, no disk space, a cache that cannot be written, an override that is not what it is said
// to be.
var ErrUnavailable = errors.New("could not be had")

// errNoRelease is wrapped by the failure of an attempt that learned that there is no such version.
var errNoRelease = errors.New("no such release")

// errChecksum is wrapped by the failure of an attempt that got something else than what was published.
var errChecksum = errors.New("WRONG CHECKSUM")

// Attempt is one way that was tried to get a binary, and why it failed.
type Attempt struct {
	Way Origin // OriginDownload or OriginBuild
	Err error
}

// UnavailableError tells all that was tried. It wraps [ErrUnavailable] and the error of each attempt.
type UnavailableError struct {
	Ref      Ref
	Attempts []Attempt // in the order in which they were made
}

// Error has a headline, a line or more for each attempt, and what can be done about it.
func (e *UnavailableError) Error() string {
	var b strings.Builder
	headline := ErrUnavailable
	if slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return errors.Is(a.Err, errNoRelease) }) &&
		!slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return a.Way == OriginBuild && !errors.Is(a.Err, errNoRelease) }) {
		headline = errNoRelease
	}
	fmt.Fprintf(&b, "%s: %v\n", e.Ref, headline)
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "  %s: %s\n", a.Way, strings.ReplaceAll(a.Err.Error(), "\n", "\n    "))
	}
	fmt.Fprintf(&b, "  what can be done: ask for a version that exists (%s), go online, or give a binary of your own: %s=%s@%s=PATH",
		programs[e.Ref.Component].releases, OverrideEnv, e.Ref.Component, e.Ref.Version)
	return b.String()
}

// Unwrap makes errors.Is see [ErrUnavailable] and what the attempts failed of.
func (e *UnavailableError) Unwrap() []error {
	errs := []error{ErrUnavailable}
	for _, a := range e.Attempts {
		errs = append(errs, a.Err)
	}
	return errs
}

// diskFull reports that err is for want of room. There is no use in trying another way then.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// cacheError is about the cache itself: every other way to get the binary would fail of it too.
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
