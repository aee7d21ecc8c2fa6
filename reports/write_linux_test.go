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

// fullDisk are the functions to test, with the files that each of them writes, in the order of
// writing.
var fullDisk = map[string]struct {
	write func(dir string) error
	files []string
}{
	"run":         {func(dir string) error { return WriteAll(dir, small()) }, []string{JSONFile, JUnitFile, HTMLFile}},
	"conformance": {func(dir string) error { return SaveConformance(dir, smallConformance(), make([]byte, 100)) }, []string{ConformanceHTML, ConformanceFile, JUnitFile}},
	"matrix":      {func(dir string) error { return SaveTables(dir, smallMatrix()) }, []string{"matrix.html", MatrixJSON, "matrix.txt", "matrix.md"}},
	"campaign":    {func(dir string) error { return WriteCampaign(dir, smallCampaign()) }, []string{CampaignHTML, CampaignJSON}},
}

// TestFullDisk writes in a process in which files cannot grow beyond 2 KiB. The kernel then refuses
// writes half way, as on a full disk. The test needs no full file system and no root.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("SKEWPROOF_TEST_FULL_DISK"); dir != "" {
		writeToFullDisk(t, dir)
		return
	}
	for name, c := range fullDisk {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			earlier := "an earlier report"
			for _, file := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(earlier), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
			child.Env = append(os.Environ(), "SKEWPROOF_TEST_FULL_DISK="+dir)
			if out, err := child.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := slices.Sorted(slices.Values(c.files))
			if got := entries(t, dir); !slices.Equal(got, want) {
				t.Errorf("the directory holds %v, want %v and no temporary file", got, want)
			}
			for _, file := range entries(t, dir) {
				if got := contents(t, filepath.Join(dir, file)); got != earlier {
					t.Errorf("%s was changed although the report could not be written whole", file)
				}
			}
		})
	}
}

// writeToFullDisk is the child process that writes to a full disk.
func writeToFullDisk(t *testing.T, dir string) {
	var unlimited syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		t.Fatal(err)
	}
	limit := syscall.Rlimit{Cur: 2048, Max: unlimited.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	err := fullDisk[filepath.Base(dir)].write(dir)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Fatal("it gave no error")
	}
	for _, want := range []string{"write " + dir, "free some space"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want it to say %q", err, want)
		}
	}
}
