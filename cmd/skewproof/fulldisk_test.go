package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A command that runs out of space says so, shows its results so far, and leaves no incomplete
// file. No file of its process may grow beyond 2 KiB. The kernel then refuses writes half way, as
// on a full disk.
func TestFullDiskLeavesNoHalves(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	repro := forgotten(t)
	for range 200 { // makes the trace larger than the limit
		repro.Case.Requests = append(repro.Case.Requests, repro.Case.Requests[0])
	}
	file := writeRepro(t, repro)
	for line, want := range map[string]struct{ broken, told string }{
		"run quiet --backend sim --out DIR/out": {"out/history.jsonl", ""},
		"replay FILE --out DIR/out":             {"out/history.jsonl", ""},
		"replay FILE --trace DIR/trace":         {"trace", ""},
		"explore --seeds 3 --out DIR/out":       {"out/campaign.json", "reference: 3 schedules"},
	} {
		dir := t.TempDir()
		words := strings.Fields(strings.NewReplacer("DIR", dir, "FILE", file).Replace(line))
		var output bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `ulimit -f 4 && exec "$0" "$@"`, self}, words...)...)
		cmd.Env = append(os.Environ(), programVariable+"=1")
		cmd.Stdout, cmd.Stderr = &output, &output
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != exitNotRun || !strings.Contains(output.String(), "free some space") || !strings.Contains(output.String(), want.told) {
			t.Errorf("%s: exit code %d; it said:\n%s", line, code, &output)
		}
		if _, err := os.Stat(filepath.Join(dir, want.broken)); err == nil {
			t.Errorf("%s: half of %s was left", line, want.broken)
		}
	}
	if _, err := call(t, "replay", file, "--trace", "/dev/full"); exitCodeOf(err) != exitNotRun || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("a trace to a full device: %v", err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Error("the device was taken for half a file and removed")
	}
}
