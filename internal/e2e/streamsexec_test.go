package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// echo sends bytes through a process of the pod.
func (s *streams) echo(t *testing.T, p streamProtocol, sent []byte) {
	t.Helper()
	var out, errOut bytes.Buffer
	err := s.exec(limited(t), p, stdio{Stdin: bytes.NewReader(sent), Stdout: &out, Stderr: &errOut}, "cat")
	if same := bytes.Equal(out.Bytes(), sent); err != nil || !same || errOut.Len() > 0 {
		t.Errorf("%d bytes sent, %d came back (the same: %t), and %q on stderr; error %v", len(sent), out.Len(), same, &errOut, err)
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // this never fails
	return b
}

// Send more bytes in both directions at once than all buffers on the way can hold.
func (s *streams) bytesBothWays(t *testing.T, p streamProtocol) {
	for _, n := range []int{0, 1, 64 << 10, 8 << 20} {
		s.echo(t, p, random(n))
	}
	var out, errOut bytes.Buffer
	err := s.exec(limited(t), p, stdio{Stdout: &out, Stderr: &errOut}, "sh", "-c", "echo out; echo err >&2")
	if err != nil || out.String() != "out\n" || errOut.String() != "err\n" {
		t.Errorf("stdout %q, stderr %q, error %v", &out, &errOut, err)
	}
}

func (s *streams) exitCodes(t *testing.T, p streamProtocol) {
	for _, code := range []int{0, 1, 42, 255} {
		// The input never ends, so only the end of the command ends the stream.
		in, writer := io.Pipe()
		err := s.exec(limited(t), p, stdio{Stdin: in, Stdout: io.Discard}, "sh", "-c", fmt.Sprint("exit ", code))
		_ = writer.Close()
		var exit utilexec.CodeExitError
		switch {
		case code == 0 && err != nil:
			t.Errorf("exit 0: %v", err)
		case code != 0 && (!errors.As(err, &exit) || exit.Code != code):
			t.Errorf("exit %d: the client says %v", code, err)
		}
	}
}

func (s *streams) halfClosed(t *testing.T, p streamProtocol) {
	var out bytes.Buffer
	sent := random(1 << 20)
	err := s.exec(limited(t), p, stdio{Stdin: bytes.NewReader(sent), Stdout: &out}, "sh", "-c", "wc -c; echo after")
	if want := fmt.Sprintf("%d\nafter\n", len(sent)); err != nil || out.String() != want {
		t.Errorf("%q, error %v; want %q", &out, err, want)
	}
}

// sizeQueue is a queue of terminal sizes.
type sizeQueue chan remotecommand.TerminalSize

func (q sizeQueue) Next() *remotecommand.TerminalSize {
	if size, ok := <-q; ok {
		return &size
	}
	return nil
}

func (s *streams) sizes(t *testing.T, p streamProtocol) {
	sizes := make(sizeQueue)
	in, typed := io.Pipe()
	said, shown := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := s.exec(limited(t), p, stdio{Stdin: in, Stdout: shown, Tty: true, TerminalSizeQueue: sizes}, sizesCommand)
		_ = shown.CloseWithError(io.EOF)
		ended <- err
	}()
	lines := bufio.NewScanner(said)
	for _, size := range []remotecommand.TerminalSize{{Width: 80, Height: 24}, {Width: 211, Height: 57}, {Width: 1, Height: 1}} {
		sizes <- size
		if want := fmt.Sprintf("%dx%d", size.Width, size.Height); !lines.Scan() || lines.Text() != want {
			t.Errorf("the process sees %q, want %s", lines.Text(), want)
		}
	}
	close(sizes)
	_ = typed.Close()
	_, _ = io.Copy(io.Discard, said)
	if err := <-ended; err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

func (s *streams) attached(t *testing.T, p streamProtocol) {
	var out, errOut bytes.Buffer
	sent := random(1 << 20)
	err := p.attach(limited(t), s.config, ofStreams(streamsPod), stdio{Stdin: bytes.NewReader(sent), Stdout: &out, Stderr: &errOut})
	if same := bytes.Equal(out.Bytes(), sent); err != nil || !same || errOut.String() != "attached" {
		t.Errorf("%d bytes sent, %d came back (the same: %t), stderr %q; error %v", len(sent), out.Len(), same, &errOut, err)
	}
}

// cp copies by an exec of tar, in each direction (k8s.io/kubectl/pkg/cmd/cp).
func (s *streams) copied(t *testing.T, p streamProtocol) {
	here, back := t.TempDir(), t.TempDir()
	for name, n := range map[string]int{"empty": 0, "small": 100, "large": 4<<20 + 7, "sub/file": 5000} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(here, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(here, name), random(n), 0o600))
	}
	there := strings.ReplaceAll(t.Name(), "/", "-")
	must(t, os.Mkdir(filepath.Join(s.kubelet.dir, there), 0o755))
	var errOut bytes.Buffer

	pack := exec.CommandContext(t.Context(), "tar", "cf", "-", "-C", here, ".")
	packed, err := pack.StdoutPipe()
	must(t, err)
	must(t, pack.Start())
	err = s.exec(limited(t), p, stdio{Stdin: packed, Stderr: &errOut}, "tar", "xmf", "-", "-C", there)
	must(t, pack.Wait())
	if err != nil || errOut.Len() > 0 {
		t.Fatalf("copy to the pod: %v; %s", err, &errOut)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "xf", "-", "-C", back)
	unpacked, err := unpack.StdinPipe()
	must(t, err)
	must(t, unpack.Start())
	err = s.exec(limited(t), p, stdio{Stdout: unpacked, Stderr: &errOut}, "tar", "cf", "-", "-C", there, ".")
	_ = unpacked.Close()
	must(t, unpack.Wait())
	if err != nil || errOut.Len() > 0 {
		t.Fatalf("copy from the pod: %v; %s", err, &errOut)
	}
	if differ, err := exec.CommandContext(t.Context(), "diff", "-r", here, back).CombinedOutput(); err != nil {
		t.Errorf("what came back is not what was sent: %v\n%s", err, differ)
	}
}

// many checks that parallel streams do not mix, and that a stream that its client abandons ends at
// the other end.
func (s *streams) many(t *testing.T, p streamProtocol) {
	running := s.kubelet.running.Load()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if i%2 == 0 {
				s.echo(t, p, random(100_000))
				return
			}
			ctx, leave := context.WithCancel(limited(t))
			in, writer := io.Pipe()
			defer func() { _ = writer.Close() }()
			go func() { _, _ = writer.Write([]byte("anything")) }()
			err := s.exec(ctx, p, stdio{Stdin: in, Stdout: writerFunc(func(b []byte) (int, error) {
				leave()
				return len(b), nil
			})}, "cat")
			if !errors.Is(err, context.Canceled) {
				t.Errorf("an abandoned stream ends with %v", err)
			}
		})
	}
	all.Wait()
	eventually(t, "the processes of abandoned streams have ended in the pod", time.Minute, func() bool { return s.kubelet.running.Load() == running })
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
