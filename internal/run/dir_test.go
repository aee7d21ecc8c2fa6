package run

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A PID may be stale or belong to another process. skewproof must enter only its own sandbox.
func TestOnlyTheRunsOwnSandboxIsEntered(t *testing.T) {
	d := Dir(t.TempDir())
	for name, content := range map[string]string{"no such process": "4194305", "another process": strconv.Itoa(os.Getpid()), "nonsense": "../self"} {
		if err := os.WriteFile(d.pid(), []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid, err := d.sandbox(); err == nil {
			t.Errorf("%s: process %s is believed to be the sandbox", name, pid)
		}
	}
}

func TestARunDirectoryIsNeverSharedByTwoRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	d, err := NewDir("", "quiet-none")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join("_out", "quiet-none-20"); !strings.Contains(string(d), want) || !filepath.IsAbs(string(d)) {
		t.Errorf("directory %s, want an absolute one with %s", d, want)
	}
	for _, private := range []string{d.scratch(), d.logs()} {
		if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, error %v; want mode 700", private, info, err)
		}
	}
	if _, err := NewDir(string(d), ""); err == nil || KindOf(err) != KindUsage {
		t.Errorf("a second run in the same directory: %v, want wrong usage", err)
	}
	d.discard()
	if _, err := os.Stat(string(d)); err == nil {
		t.Error("a directory in which nothing was run is left")
	}
}

// Tidy does not remove files that another program put into the directory.
func TestTidyLeavesWhatARunLeaves(t *testing.T) {
	d, err := NewDir(filepath.Join(t.TempDir(), "run"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(d.logs(), "etcd.log"), filepath.Join(d.scratch(), "key")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.discard()
	if _, err := os.Stat(filepath.Join(d.logs(), "etcd.log")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.scratch()); err == nil {
		t.Error("the scratch directory is left")
	}
}
