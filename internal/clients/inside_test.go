package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
)

// inside is an Inside whose skewproof is a script. It runs script in the place of kubectl.
func inside(t *testing.T, script string) Inside {
	t.Helper()
	program := filepath.Join(t.TempDir(), "skewproof")
	text := "#!/bin/sh\n[ \"$1 $2 $3 $4\" = \"shell DIR -- kubectl\" ] || exit 99\nshift 4\n" + script + "\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return Inside{Program: program, Dir: "DIR", Clients: map[binaries.Ref]string{{Component: binaries.Kubectl, Version: "v1.37.1"}: "kubectl"}}
}

func TestInside(t *testing.T) {
	i := Invocation{Program: "kubectl", Version: "v1.37.1", Words: []string{"get", "a b"}, Home: filepath.Join(t.TempDir(), "home"), Input: "in", Editor: "ed", Limit: time.Minute}
	got, err := inside(t, `echo "$1|$2|$HOME|$KUBE_EDITOR|$(cat)"; echo bad >&2; exit 3`).Run(t.Context(), i)
	want := Ended{Code: 3, Output: "get|a b|" + i.Home + "|ed|in\n", Problem: "bad\n"}
	if err != nil || got != want {
		t.Errorf("%+v, error %v; want %+v", got, err, want)
	}
	if info, err := os.Stat(i.Home); err != nil || !info.IsDir() {
		t.Errorf("no home: %v", err)
	}
	for said, want := range map[string]string{
		"skewproof: DIR is not running": "DIR is not running", "nsenter: cannot open /proc/1/ns/net": "cannot open /proc/1/ns/net", "sh: 1: kubectl: not found": "1: kubectl: not found",
	} {
		if _, err := inside(t, "echo '"+said+"' >&2; exit 3").Run(t.Context(), i); err == nil || err.Error() != want {
			t.Errorf("error %v where it says %q", err, said)
		}
	}
	i.Version = "v1.30.0"
	if _, err := inside(t, "").Run(t.Context(), i); err == nil || err.Error() != "there is no kubectl v1.30.0" {
		t.Errorf("error %v of a version that is not there", err)
	}
}

// A command that never ends is ended with all that it started: when it has printed enough, or at
// its limit.
func TestInsideEnds(t *testing.T) {
	endless := inside(t, "echo begun; sleep 3600 & wait")
	i := Invocation{Program: "kubectl", Version: "v1.37.1", Home: t.TempDir(), Limit: time.Minute, Seen: func(output string) bool { return strings.Contains(output, "begun") }}
	if got, err := endless.Run(t.Context(), i); err != nil || !got.Enough || got.TooLong {
		t.Errorf("%+v, error %v where it printed enough", got, err)
	}
	i.Seen, i.Limit = nil, 300*time.Millisecond
	if got, err := endless.Run(t.Context(), i); err != nil || got.Enough || !got.TooLong {
		t.Errorf("%+v, error %v at the limit", got, err)
	}
}
