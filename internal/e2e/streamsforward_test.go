package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/skewproof/skewproof/internal/workload"
)

// forwarded sends data on several connections to a server in the pod. The server answers after the
// end of the input.
func (s *streams) forwarded(t *testing.T, p streamProtocol) {
	local, stop := s.forward(t, p, limited(t))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			sent := random(1 << (4 + 2*i))
			conn, err := net.Dial("tcp", local)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			go func() {
				_, _ = conn.Write(sent)
				_ = conn.(*net.TCPConn).CloseWrite()
			}()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, append([]byte("echo:"), sent...)) {
				t.Errorf("connection %d: %d bytes sent, %d came back, error %v", i, len(sent), len(got), err)
			}
		})
	}
	all.Wait()
	if err := stop(); err != nil {
		t.Errorf("port-forward ended with %v", err)
	}
}

// forward listens on a local port for a server in the pod. The server sends a greeting, and then
// sends back what it receives.
func (s *streams) forward(t *testing.T, p streamProtocol, ctx context.Context) (local string, stop func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.WriteString(conn, "echo:")
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	u, err := podURL(s.config, ofStreams(streamsPod), "portforward", &corev1.PodPortForwardOptions{})
	must(t, err)
	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan struct{})
	forwarder, err := p.forwarder(ctx, s.config, u, []string{fmt.Sprintf(":%d", listener.Addr().(*net.TCPAddr).Port)}, ready)
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("port-forward: %v", err)
	}
	ports, err := forwarder.GetPorts()
	must(t, err)
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() error {
		cancel()
		return <-ended
	}
}

// followed checks that a line arrives when it is written, and not only with the next line.
func (s *streams) followed(t *testing.T) {
	running := s.kubelet.running.Load()
	follow := func(ctx context.Context) io.ReadCloser {
		t.Helper()
		opened, err := s.client.CoreV1().Pods(workload.Namespace).GetLogs(streamsPod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		must(t, err)
		return opened
	}
	lines := follow(limited(t))
	read := bufio.NewScanner(lines)
	for i := range 100 {
		line := fmt.Sprintf("line %d of the container", i)
		s.kubelet.logs.write(t, line)
		if !read.Scan() || read.Text() != line {
			t.Fatalf("%q, error %v; want %q", read.Text(), read.Err(), line)
		}
	}
	s.kubelet.logs.end()
	if read.Scan() || read.Err() != nil {
		t.Errorf("after the end of the container: %q, error %v", read.Text(), read.Err())
	}
	must(t, lines.Close())
	ctx, leave := context.WithCancel(limited(t))
	abandoned := follow(ctx)
	s.kubelet.logs.write(t, "read by nobody")
	leave()
	_ = abandoned.Close()
	eventually(t, "the kubelet knows that no client follows the log", time.Minute, func() bool { return s.kubelet.running.Load() == running })
}
