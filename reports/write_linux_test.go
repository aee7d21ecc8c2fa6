package reports

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestFullDisk writes where files cannot grow beyond 4 KiB, in a process of its own: the kernel then refuses writes half
// way, as on a full disk, without a file system to fill and without root.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("SKEWPROOF_TEST_FULL_DISK"); dir != "" {
		var unlimited syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
			t.Fatal(err)
		}
		limit := syscall.Rlimit{Cur: 4096, Max: unlimited.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		err := WriteAll(dir, small())
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			t.Fatal("WriteAll gave no error")
		}
		for _, want := range []string{"write " + filepath.Join(dir, JSONFile), "free some space"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %q, want it to say %q", err, want)
			}
		}
		return
	}
	dir := t.TempDir()
	earlier := "an earlier report"
	for _, name := range []string{JUnitFile, HTMLFile, JSONFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(earlier), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
	child.Env = append(os.Environ(), "SKEWPROOF_TEST_FULL_DISK="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := entries(t, dir), []string{JUnitFile, HTMLFile, JSONFile}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v and no temporary file", got, want)
	}
	for _, name := range entries(t, dir) {
		if got := contents(t, filepath.Join(dir, name)); got != earlier {
			t.Errorf("%s was changed although the report could not be written whole", name)
		}
	}
}
