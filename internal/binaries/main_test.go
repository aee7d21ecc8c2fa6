package binaries

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	testVersion = "v1.36.3"
	noGo        = "/nonexistent/go" // no test may build unless it is about building
)

// getterEnv makes the test binary a process that gets one binary, for tests about several
// processes: cache directory, Kubernetes URL.
const getterEnv = "SKEWPROOF_TEST_GETTER"

func TestMain(m *testing.M) {
	if arg := os.Getenv(getterEnv); arg != "" {
		os.Exit(getter(arg))
	}
	os.Exit(m.Run())
}

func getter(arg string) int {
	dir, url, _ := strings.Cut(arg, ",")
	s := &Store{Dir: dir, KubernetesURL: url, EtcdURL: url, Go: noGo, Progress: os.Stderr}
	b, err := s.Get(context.Background(), KubeAPIServer, testVersion)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(b.Origin)
	return 0
}

// lines is a progress writer that can be waited on.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	waiting map[string]chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for want, found := range l.waiting {
		if strings.Contains(l.text.String(), want) {
			close(found)
			delete(l.waiting, want)
		}
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// has is closed once the text contains want.
func (l *lines) has(want string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := make(chan struct{})
	if strings.Contains(l.text.String(), want) {
		close(found)
		return found
	}
	if l.waiting == nil {
		l.waiting = map[string]chan struct{}{}
	}
	l.waiting[want] = found
	return found
}

// script is an executable that answers --version like the real one.
func script(c Component, version string) []byte {
	if c == Etcd {
		return fmt.Appendf(nil, "#!/bin/sh\necho 'etcd Version: %s'\necho 'Git SHA: abc'\n", strings.TrimPrefix(version, "v"))
	}
	return fmt.Appendf(nil, "#!/bin/sh\necho 'Kubernetes %s'\n", version)
}

// serve answers on loopback until the test ends.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// unreachable is the URL of a host that refuses connections.
func unreachable(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

// newStore has an empty cache and a Progress of type *lines. Where url is "", nothing can be
// reached.
func newStore(t *testing.T, url string) *Store {
	t.Helper()
	url = cmp.Or(url, unreachable(t))
	return &Store{Dir: t.TempDir(), KubernetesURL: url, EtcdURL: url, Go: noGo, Progress: &lines{}}
}

func progressOf(s *Store) *lines { return s.Progress.(*lines) }

// fill puts a working binary into the cache as a download would.
func fill(t *testing.T, s *Store, c Component, version string) Binary {
	t.Helper()
	ref, err := NewRef(c, version)
	if err != nil {
		t.Fatal(err)
	}
	work, err := newWorkspace(s.Dir, ref)
	if err != nil {
		t.Fatal(err)
	}
	defer work.remove()
	if err := os.WriteFile(work.binary(), script(c, version), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := writeEntry(s.Dir, ref, work, Binary{Origin: OriginDownload, How: "put there by a test"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkNothingLeft fails if the cache holds anything but locks.
func checkNothingLeft(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == locksDir {
			return filepath.SkipDir
		}
		if !d.IsDir() || filepath.Dir(path) == filepath.Join(dir, tmpDir) {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func writeAll(t *testing.T, w io.Writer, p []byte) {
	t.Helper()
	if _, err := w.Write(p); err != nil {
		t.Logf("the client has closed its connection: %v", err)
	}
}

// newSecureServer answers with TLS on loopback until the test ends.
func newSecureServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	return server
}
