package upstreame2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// listTimeout bounds the listing, which takes a second or two.
const listTimeout = time.Minute

// List asks a binary of e2e.test for the full names of its specs, sorted.
func List(ctx context.Context, binary string) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("no answer within %s", listTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--list-tests")
	cmd.WaitDelay = time.Second
	output, err := cmd.Output()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var names []string
	if err == nil {
		names, err = ParseList(string(output))
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s for the list of its specs (--list-tests): %w", binary, err)
	}
	return names, nil
}

// listed matches a line of the list: the place of the spec in the source, and its full name.
// Source: k8s.io/kubernetes test/e2e/framework/test_context.go, listTestInformation
var listed = regexp.MustCompile(`^    (\S+:\d+): (.*\S)\s*$`)

// ParseList reads the output of e2e.test --list-tests. It refuses an empty list, and a list with a
// name twice, because such a name would be ambiguous.
func ParseList(output string) ([]string, error) {
	var names []string
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		if found := listed.FindStringSubmatch(line); found != nil {
			names = append(names, found[2])
		} else if strings.HasPrefix(line, "    ") {
			return nil, fmt.Errorf("a line is not FILE:LINE: NAME: %q", line)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("it lists no spec")
	}
	slices.Sort(names)
	for i := range names[1:] {
		if names[i] == names[i+1] {
			return nil, fmt.Errorf("it lists %q twice", names[i])
		}
	}
	return names, nil
}
