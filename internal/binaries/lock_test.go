package binaries

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// heldRelease serves a release whose body is held back until release is called, and counts how
// often it was asked for.
func heldRelease(t *testing.T, body []byte) (url string, asked *atomic.Int32, release func()) {
	asked = new(atomic.Int32)
	held := make(chan struct{})
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release) // before the server is closed, which waits for its handlers
	url = kubeRelease(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.(http.Flusher).Flush()
		select {
		case <-held:
		case <-r.Context().Done():
		}
		writeAll(t, w, body)
	}, sha(body))
	return url, asked, release
}

func TestTwoProcessesFetchOnce(t *testing.T) {
	needLinux(t)
	url, asked, release := heldRelease(t, script(KubeAPIServer, testVersion))
	dir := t.TempDir()
	type process struct {
		cmd            *exec.Cmd
		stdout, stderr lines
	}
	processes := []*process{{}, {}}
	for _, p := range processes {
		p.cmd = exec.CommandContext(t.Context(), os.Args[0])
		p.cmd.Env = append(os.Environ(), getterEnv+"="+dir+","+url)
		p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-processes[0].stderr.has(": waiting for "):
	case <-processes[1].stderr.has(": waiting for "):
	case <-t.Context().Done():
	}
	release()
	var all string
	for _, p := range processes {
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, p.stderr.String())
		}
		all += p.stdout.String()
	}
	if asked.Load() != 1 || strings.Count(all, "download\n") != 1 || strings.Count(all, "cache\n") != 1 {
		t.Errorf("it was asked for %d times, origins %q; want one download and one hit", asked.Load(), all)
	}
}

// A process that is killed with SIGKILL while it fetches does not block the next one.
func TestKilledProcessReleasesTheLock(t *testing.T) {
	needLinux(t)
	url, _, release := heldRelease(t, script(KubeAPIServer, testVersion))
	dir := t.TempDir()
	stderr := &lines{}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), getterEnv+"="+dir+","+url)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stderr.has(": downloading "):
	case <-t.Context().Done():
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	release()
	s := newStore(t, url)
	s.Dir = dir
	if b, err := s.Get(t.Context(), KubeAPIServer, testVersion); err != nil || b.Origin != OriginDownload {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestWaitingForALockIsCancelled(t *testing.T) {
	s := newStore(t, "")
	ref := Ref{KubeAPIServer, testVersion}
	unlock, err := s.lock(t.Context(), s.Dir, ref.Name(), s.progress(ref))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	interrupted := errors.New("interrupted")
	go func() {
		select {
		case <-progressOf(s).has(": waiting for "):
		case <-t.Context().Done():
		}
		cancel(interrupted)
	}()
	if _, err := s.Get(ctx, KubeAPIServer, testVersion); !errors.Is(err, interrupted) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
