package reports

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// entries are the names in a directory, including temporary files, sorted.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWriteAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	if err := WriteAll(dir, small()); err != nil {
		t.Fatal(err)
	}
	if got, want := entries(t, dir), []string{JUnitFile, HTMLFile, JSONFile}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
	for _, name := range entries(t, dir) {
		if got, want := contents(t, filepath.Join(dir, name)), contents(t, filepath.Join("testdata", name)); got != want {
			t.Errorf("%s is not what its writer gives", name)
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o644 {
			t.Errorf("%s has the mode %v, want one that lets others read it", name, info.Mode().Perm())
		}
	}
	r, err := Read(filepath.Join(dir, JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteAll(dir, r); err != nil {
		t.Errorf("write over an earlier report: %v", err)
	}
	if got := contents(t, filepath.Join(dir, HTMLFile)); got != contents(t, filepath.Join("testdata", HTMLFile)) {
		t.Error("a report that was read back renders differently")
	}
}

func TestWriteAllErrorsNameFileAndWayOut(t *testing.T) {
	for _, c := range []struct {
		name string
		dir  func(t *testing.T) string
		want []string
	}{
		{
			name: "the directory is a file",
			dir: func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "out")
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			},
			want: []string{"make the report directory", "/out", "choose another output directory"},
		},
		{
			name: "a parent of the directory is a file",
			dir: func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				return filepath.Join(path, "out")
			},
			want: []string{"make the report directory", "/file", "a file is in the way"},
		},
		{
			name: "a directory stands where a file should",
			dir: func(t *testing.T) string {
				dir := t.TempDir()
				if err := os.MkdirAll(filepath.Join(dir, HTMLFile, "inside"), 0o700); err != nil {
					t.Fatal(err)
				}
				return dir
			},
			want: []string{"write ", HTMLFile, "choose another output directory"},
		},
		{
			name: "the file system is read-only",
			dir: func(t *testing.T) string {
				const dir = "/proc/sys"
				if _, err := os.Stat(dir); err != nil {
					t.Skip("there is no ", dir, " here to try it on")
				}
				return dir
			},
			want: []string{"write /proc/sys/report.json"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := WriteAll(c.dir(t), small())
			if err == nil {
				t.Fatal("WriteAll gave no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want it to say %q", err, want)
				}
			}
		})
	}
}

// TestWriteAllLeavesNothingBehind checks that an error at the last file removes all staged files.
func TestWriteAllLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, JSONFile)
	if err := os.MkdirAll(filepath.Join(blocked, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteAll(dir, small()); err == nil {
		t.Fatal("WriteAll gave no error")
	}
	if got := entries(t, dir); !slices.Equal(got, []string{JSONFile}) {
		t.Errorf("the directory holds %v, want only what was there before", got)
	}
}

func TestWayOut(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.ENOSPC, "free some space"},
		{syscall.EDQUOT, "free some space"},
		{syscall.EROFS, "can be written to"},
		{syscall.EACCES, "can be written to"},
		{syscall.ENOTDIR, "a file is in the way"},
		{errors.New("anything else"), ""},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			got := wayOut(&os.PathError{Op: "write", Path: "p", Err: c.err})
			if !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("wayOut is %q, want %q", got, c.want)
			}
		})
	}
}
