package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func trial() error { return Try(os.Args[len(os.Args)-1]) }

// nowhere fails inside the sandbox, because the scratch directory does not exist.
func nowhere() error { return Try(os.Args[len(os.Args)-1] + "/missing") }

func TestCheck(t *testing.T) {
	mustRun(t, "isolated") // skips where namespaces are not allowed
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name, role string
		ctx        context.Context
		want       string // part of the error; empty: none
	}{
		{"passes", "trial", t.Context(), ""},
		{"says what the inner half said", "nowhere", t.Context(), "/missing inside the sandbox: no such file or directory"},
		{"cancelled", "trial", cancelled, "check the sandbox: context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			args := make([]string, 1, 2) // Check could write into the spare capacity, and must not
			args[0] = "check-sandbox"
			err := Check(c.ctx, Command{Args: args, Env: []string{roleVariable + "=" + c.role}})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("Check: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("Check: error %v, want one with %q", err, c.want)
			case c.ctx.Err() != nil && !errors.Is(err, c.ctx.Err()):
				t.Errorf("Check: error %v does not wrap %v", err, c.ctx.Err())
			}
			if args[:2][1] != "" {
				t.Errorf("Check wrote %q into the caller's arguments", args[:2][1])
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
				t.Errorf("left in the temporary directory: %v, error %v", left, err)
			}
		})
	}
}
