package binaries

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

func TestReadEntry(t *testing.T) {
	ref := Ref{KubeAPIServer, testVersion}
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, b Binary) error
		want   string // "": it is used
	}{
		{"whole", func(*testing.T, Binary) error { return nil }, ""},
		{"a byte changed", func(_ *testing.T, b Binary) error {
			text, err := os.ReadFile(b.Path)
			text[len(text)-2] ^= 1
			return errors.Join(err, os.WriteFile(b.Path, text, 0o755))
		}, "has the SHA-256"},
		{"truncated", func(_ *testing.T, b Binary) error { return os.Truncate(b.Path, 3) }, "has 3 bytes"},
		{"not executable", func(_ *testing.T, b Binary) error { return os.Chmod(b.Path, 0o644) }, "not an executable file"},
		{"removed", func(_ *testing.T, b Binary) error { return os.Remove(b.Path) }, "no such file"},
		{"a link elsewhere", func(_ *testing.T, b Binary) error {
			return errors.Join(os.Remove(b.Path), os.Symlink("/bin/sh", b.Path))
		}, "not an executable file"},
		{"origin.json removed", func(_ *testing.T, b Binary) error { return os.Remove(filepath.Join(filepath.Dir(b.Path), originFile)) }, "no such file"},
		{"origin.json half written", func(_ *testing.T, b Binary) error {
			return os.Truncate(filepath.Join(filepath.Dir(b.Path), originFile), 10)
		}, "unexpected end of JSON"},
		{"origin.json of another version", func(_ *testing.T, b Binary) error {
			path := filepath.Join(filepath.Dir(b.Path), originFile)
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), testVersion, "v1.36.4", 1)), 0o644))
		}, "is about kube-apiserver v1.36.4"},
		{"origin.json names a file elsewhere", func(_ *testing.T, b Binary) error {
			path := filepath.Join(filepath.Dir(b.Path), originFile)
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), `"kube-apiserver"`, `"../../../bin/sh"`, 1)), 0o644))
		}, "unknown component"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			good := script(KubeAPIServer, testVersion)
			s := newStore(t, kubeRelease(t, func(w http.ResponseWriter, _ *http.Request) { writeAll(t, w, good) }, sha(good)))
			filled := fill(t, s, KubeAPIServer, testVersion)
			if err := tc.damage(t, filled); err != nil {
				t.Fatal(err)
			}
			_, err := readEntry(s.Dir, ref)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || errors.Is(err, errNotCached) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			needLinux(t)
			b, err := s.Get(t.Context(), KubeAPIServer, testVersion)
			if err != nil || b.Origin != OriginDownload {
				t.Fatalf("it was not fetched again: %+v, %v", b, err)
			}
			if text := progressOf(s).String(); !strings.Contains(text, "is refused and fetched again: ") || !strings.Contains(text, tc.want) {
				t.Errorf("nobody was told:\n%s", text)
			}
			if _, err := readEntry(s.Dir, ref); err != nil {
				t.Errorf("after it was fetched again: %v", err)
			}
		})
	}
}

func TestReadEntryMiss(t *testing.T) {
	s := newStore(t, "")
	if _, err := readEntry(s.Dir, Ref{KubeAPIServer, testVersion}); !errors.Is(err, errNotCached) {
		t.Errorf("got %v", err)
	}
}

// A hit needs neither network nor a cache that can be written.
func TestGetFromReadOnlyCache(t *testing.T) {
	var asked atomic.Int32
	s := newStore(t, serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	fill(t, s, KubeAPIServer, testVersion)
	// A file where the locks would be: unlike permissions, it stops root too.
	if err := os.WriteFile(filepath.Join(s.Dir, locksDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := s.Get(t.Context(), KubeAPIServer, testVersion)
	if err != nil || b.Origin != OriginCache || b.How != "put there by a test" {
		t.Errorf("hit: got %+v, %v", b, err)
	}
	_, err = s.Get(t.Context(), KubeAPIServer, "v1.37.1")
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "cannot be written") || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("miss: got %v", err)
	}
	if asked.Load() != 0 {
		t.Errorf("the network was asked %d times", asked.Load())
	}
}

// The files that a killed process left in the workspace are not part of what the next process
// stages.
func TestLeftoversOfAKilledProcess(t *testing.T) {
	needLinux(t)
	good := script(KubeAPIServer, testVersion)
	s := newStore(t, kubeRelease(t, func(w http.ResponseWriter, _ *http.Request) { writeAll(t, w, good) }, sha(good)))
	work, err := newWorkspace(s.Dir, Ref{KubeAPIServer, testVersion})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(work.binary(), []byte("half a bina"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := s.Get(t.Context(), KubeAPIServer, testVersion)
	if err != nil || b.SHA256 != sha(good) {
		t.Errorf("got %+v, %v", b, err)
	}
	if _, err := os.Stat(work.root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the workspace is still there: %v", err)
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/somewhere")
	if dir, err := DefaultDir(); err != nil || dir != "/somewhere/skewproof/binaries" {
		t.Errorf("got %q, %v", dir, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := new(Store).Get(t.Context(), Etcd, DefaultEtcd); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "set XDG_CACHE_HOME") {
		t.Errorf("no home: got %v", err)
	}
}

func TestCacheError(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&os.PathError{Op: "write", Path: "/c/x", Err: syscall.ENOSPC}, "no room on the disk of the cache /c"},
		{&os.PathError{Op: "write", Path: "/c/x", Err: syscall.EDQUOT}, "no room on the disk of the cache /c"},
		{&os.PathError{Op: "mkdir", Path: "/c/x", Err: syscall.EROFS}, "the cache /c cannot be written"},
		{&os.PathError{Op: "mkdir", Path: "/c/x", Err: syscall.EACCES}, "the cache /c cannot be written"},
		{&os.PathError{Op: "read", Path: "/c/x", Err: syscall.EIO}, "the cache /c: read /c/x"},
	} {
		err := &cacheError{dir: "/c", err: tc.err}
		if !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrUnavailable) || !errors.Is(err, tc.err) {
			t.Errorf("%v: got %q, want %q", tc.err, err, tc.want)
		}
	}
}
