package binaries

import (
	"slices"
	"testing"
)

func TestMemAvailable(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:       24683616 kB\nMemFree:        16003000 kB\nMemAvailable:   4194304 kB\nBuffers: 1 kB\n": 4 << 30,
		"MemTotal:       24683616 kB\n":  0, // a kernel before Linux 3.14
		"MemAvailable:   all of it kB\n": 0,
		"":                               0,
	} {
		if got := memAvailable(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// A build on a machine with ample memory collects garbage less often, unless the user decides.
func TestTheUsersGOGCStays(t *testing.T) {
	ample := availableMemory() >= ampleMemory
	for user, want := range map[string]bool{"": ample, "50": false, "off": false} {
		t.Setenv("GOGC", user)
		if got := slices.Contains(goCommand{}.environment(), rareGC); got != want {
			t.Errorf("GOGC=%s, ample memory %v: %s is set: %v, want %v", user, ample, rareGC, got, want)
		}
	}
}
