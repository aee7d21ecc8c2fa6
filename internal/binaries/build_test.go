package binaries

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestBuildKubeAPIServer(t *testing.T) {
	goEnvironment(t)
	// These variables may be set by a user, and must not change the outcome.
	t.Setenv("GOFLAGS", "-mod=vendor -tags=nonsense")
	t.Setenv("GOWORK", "/nonexistent/go.work")
	t.Setenv("GOOS", "plan9")
	s := newStore(t, "")
	s.Go = "go"
	// A module around the cache has no say either.
	if err := os.WriteFile(filepath.Join(s.Dir, "go.mod"), []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := s.Get(t.Context(), KubeAPIServer, testVersion)
	if err != nil {
		t.Fatal(err)
	}
	if want := "built from the module k8s.io/kubernetes@v1.36.3 with go"; b.Origin != OriginBuild || !strings.HasPrefix(b.How, want) {
		t.Errorf("got %+v", b)
	}
	said, err := exec.Command(b.Path, "--version").CombinedOutput()
	commit := strings.Repeat("0123456789", 4)
	want := "Kubernetes v1.36.3\n1.36 clean " + commit + "\nclient-go v1.36.3\n1.36 clean " + commit + "\n"
	if err != nil || string(said) != want {
		t.Errorf("it says %q, %v; want %q", said, err, want)
	}
	info, err := buildinfo.ReadFile(b.Path)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" || !strings.Contains(settings["DefaultGODEBUG"], "panicnil=1") {
		t.Errorf("built with %v", settings)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, tmpDir, "kube-apiserver@"+testVersion)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the workspace is still there: %v", err)
	}
	s.Go = noGo
	if again, err := s.Get(t.Context(), KubeAPIServer, testVersion); err != nil || again.Origin != OriginCache || again.How != b.How ||
		again.Seconds != b.Seconds || b.Seconds == 0 {
		t.Errorf("the second time: got %+v, %v", again, err)
	}
}

func TestBuildEtcd(t *testing.T) {
	goEnvironment(t)
	s := newStore(t, "")
	s.Go = "go"
	_, err := s.Get(t.Context(), Etcd, DefaultEtcd)
	// The stand-in adds the number of its arguments to the version: the error shows that they reach
	// it.
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), `says "etcd Version: 3.6.8-2", not v3.6.8`) {
		t.Errorf("got %v", err)
	}
}

// If a download fails for any reason, the binary is built instead.
func TestDownloadFallsThroughToBuild(t *testing.T) {
	needLinux(t)
	bad := badDownloads(t)
	goEnvironment(t)
	for _, tc := range bad {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t, tc.url)
			s.Go = "go"
			impatient(s, tc)
			b, err := s.Get(t.Context(), KubeAPIServer, testVersion)
			if err != nil || b.Origin != OriginBuild {
				t.Fatalf("got %+v, %v", b, err)
			}
			if text := progressOf(s).String(); !strings.Contains(text, "not downloaded: ") || !strings.Contains(text, tc.want) {
				t.Errorf("the output does not say why:\n%s", text)
			}
			if got, want := strings.Contains(b.How, "WRONG CHECKSUM"), tc.is == errChecksum; got != want {
				t.Errorf("the wrong checksum is remembered: %v, want %v: %s", got, want, b.How)
			}
		})
	}
}

func TestBuildFails(t *testing.T) {
	goEnvironment(t)
	for _, tc := range []struct {
		name      string
		component Component
		version   string
		goPath    string
		want      []string
	}{
		{"no go command", KubeAPIServer, testVersion, noGo, []string{"could not be had", "install Go (https://go.dev/dl)"}},
		{"does not compile", KubeAPIServer, "v1.36.4", "go", []string{"go build: exit status 1", "undefined: undefinedOfUpstream"}},
		{"a staging module is missing", KubeAPIServer, "v1.36.5", "go", []string{"one of its modules was not published", "k8s.io/component-base@v0.36.5"}},
		{"needs a newer Go", KubeAPIServer, "v1.99.0", "go", []string{"needs a newer Go"}},
		{"etcd that is not a module", Etcd, "v3.4.30", "go", []string{"since v3.5.0 only"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t, "")
			s.Go = tc.goPath
			_, err := s.Get(t.Context(), tc.component, tc.version)
			if !errors.Is(err, ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
			for _, want := range append(tc.want, "what can be done", OverrideEnv) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
			checkNothingLeft(t, s.Dir)
		})
	}
}

func TestNoSuchRelease(t *testing.T) {
	goEnvironment(t)
	t.Setenv("GOPROXY", serve(t, http.NotFound))
	s := newStore(t, serve(t, http.NotFound))
	s.Go = "go"
	_, err := s.Get(t.Context(), KubeAPIServer, "v1.98.0")
	if !errors.Is(err, ErrUnavailable) || !strings.HasPrefix(err.Error(), "kube-apiserver v1.98.0: no such release\n") {
		t.Errorf("got %v", err)
	}
	checkNothingLeft(t, s.Dir)
}

func TestOffline(t *testing.T) {
	goEnvironment(t)
	t.Setenv("GOPROXY", unreachable(t))
	s := newStore(t, "")
	s.Go = "go"
	_, err := s.Get(t.Context(), KubeAPIServer, testVersion)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, errModuleProxy) || strings.Contains(err.Error(), "no such release") {
		t.Errorf("got %v", err)
	}
}

// An interrupted build kills go and all it has started, leaves nothing behind, and does not hold
// the lock.
func TestBuildCancelled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process groups are killed on linux only")
	}
	for name, text := range map[string]string{
		"a process that go has started": "#!/bin/sh\nsleep 1000 & echo $! > %[1]s; mv %[1]s %[2]s; wait\n",
		"go itself":                     "#!/bin/sh\necho $$ > %[1]s; mv %[1]s %[2]s; exec sleep 1000\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fifo := filepath.Join(dir, "pid")
			command := filepath.Join(dir, "go")
			if err := os.WriteFile(command, fmt.Appendf(nil, text, fifo+".part", fifo), 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			interrupted := errors.New("interrupted")
			pid := make(chan string, 1)
			go func() {
				pid <- await(t, fifo)
				cancel(interrupted)
			}()
			s := newStore(t, "")
			s.Go = command
			_, err := s.Get(ctx, KubeAPIServer, testVersion)
			if !errors.Is(err, interrupted) || errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			checkNothingLeft(t, s.Dir)
			awaitGone(t, <-pid)
			for _, lock := range []string{buildLock, "kube-apiserver@" + testVersion} {
				unlock, err := s.lock(t.Context(), s.Dir, lock, s.progress(Ref{KubeAPIServer, testVersion}))
				if err != nil {
					t.Fatal(err)
				}
				unlock()
			}
			if text := progressOf(s).String(); strings.Contains(text, "waiting for") {
				t.Errorf("a lock was still held:\n%s", text)
			}
		})
	}
}

// Builds of different binaries take turns.
func TestOneBuildAtATime(t *testing.T) {
	goEnvironment(t)
	s := newStore(t, "")
	s.Go = "go"
	unlock, err := s.lock(t.Context(), s.Dir, buildLock, s.progress(Ref{Etcd, DefaultEtcd}))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := s.Get(t.Context(), KubeAPIServer, testVersion)
		got <- err
	}()
	select {
	case <-progressOf(s).has("kube-apiserver v1.36.3: waiting for process "):
	case err := <-got:
		t.Fatalf("it did not wait: %v", err)
	}
	if text := progressOf(s).String(); !strings.Contains(text, "at work on etcd v3.6.8") || strings.Contains(text, "building it") {
		t.Errorf("while another build lasts:\n%s", text)
	}
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
