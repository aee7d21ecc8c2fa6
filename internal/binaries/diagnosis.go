package binaries

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// errModuleProxy is wrapped when no module could be asked for, as opposed to one that does not exist.
var errModuleProxy = errors.New("the Go module proxy cannot be reached (GOPROXY)")

// symptoms are what the go command is known to say, in the order in which they are looked for: what is listed first
// explains what is listed later. (The go command has no error codes. The texts are those of cmd/go/internal/modfetch,
// modload and work.)
var symptoms = []struct {
	said []string
	err  error
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
	{[]string{"signal: killed"}, errors.New("a part of the build was killed, most likely for want of memory (it takes about 4 GB)")},
}

// diagnose names the cause in what the go command said; nil if none is known.
func diagnose(said string) error {
	for _, s := range symptoms {
		for _, text := range s.said {
			if strings.Contains(said, text) {
				return s.err
			}
		}
	}
	return nil
}

// moduleError is about the one module that the version was asked of.
func moduleError(module, said string) error {
	said = strings.TrimSpace(said)
	if cause := diagnose(said); cause != nil {
		return fmt.Errorf("get the module %s: %w: %s", module, cause, said)
	}
	return fmt.Errorf("get the module %s: %s", module, said)
}

// buildError is about the build, in which a module that is missing is another than the one that the version was asked of:
// some Kubernetes releases lack one of their staging modules.
func buildError(ref Ref, err error) error {
	var failed *goError
	if !errors.As(err, &failed) {
		return err
	}
	cause := diagnose(failed.said)
	if errors.Is(cause, errNoRelease) {
		return fmt.Errorf("%s exists, but a module that it is made of was not published; another patch version may be "+
			"complete: %w", ref, err)
	}
	if cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
