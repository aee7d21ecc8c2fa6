package kind

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// engineOf puts a program in the place of Docker's client, which is run in an empty directory.
func engineOf(t *testing.T, lines string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+lines), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Chdir(t.TempDir())
}

// A server is said to have crashed if its process has ended, and not if the engine could not be asked for a moment.
func TestAProcessHasEndedWhenItsNodeSaysSo(t *testing.T) {
	// inside runs what is to be run in a node: 'exec --privileged NODE COMMAND…'.
	const inside = "shift 3; exec \"$@\"\n"
	for name, c := range map[string]struct {
		engine string
		pid    string
		want   bool
	}{
		"it runs":                         {inside, "self", true},
		"it has ended":                    {inside, "none", false},
		"it runs, and the engine is busy": {"[ -e asked ] || { touch asked; exit 126; }\n" + inside, "self", true},
		"the node is gone":                {"exit 1\n", "self", false},
	} {
		t.Run(name, func(t *testing.T) {
			engineOf(t, c.engine)
			p := &process{node: "node", pid: c.pid}
			if got := p.runs(t.Context(), 2*time.Second); got != c.want {
				t.Errorf("it is said to run: %v, want %v", got, c.want)
			}
		})
	}
}
