package e2e

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/skewproof/skewproof/internal/workload"
)

// vanished checks that a reset of the client's connection ends the client's command, even if no
// data is sent in either direction.
func (s *streams) vanished(t *testing.T) {
	running := s.kubelet.running.Load()
	options := &corev1.PodExecOptions{Container: streamsContainer, Command: []string{"cat"}, Stdin: true, Stdout: true}
	u, err := podURL(s.config, ofStreams(streamsPod), "exec", options)
	must(t, err)
	certificate, err := tls.LoadX509KeyPair(insideKeys("admin.crt"), insideKeys("admin.key"))
	must(t, err)
	trust := &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: insidePool(t, "ca"), ServerName: peerName, Certificates: []tls.Certificate{certificate},
	}
	for range 40 {
		conn, err := (&tls.Dialer{Config: trust}).DialContext(limited(t), "tcp", u.Host)
		must(t, err)
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n", u.RequestURI(), peerName)
		must(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v, error %v; want an upgrade", answer, err)
		}
		tcp := conn.(*tls.Conn).NetConn().(*net.TCPConn)
		must(t, tcp.SetLinger(0)) // resets the connection on close
		must(t, tcp.Close())
	}
	eventually(t, "the processes of the streams have ended in the pod", time.Minute, func() bool { return s.kubelet.running.Load() == running })
}

// idleFor is longer than every deadline of a sidecar for the bytes of bodies and answers.
const idleFor = 100 * time.Second

// stayIdle opens streams on which nothing is sent. It returns a function that waits until they have
// been idle for [idleFor], and then uses them.
func (s *streams) stayIdle(t *testing.T) func(*testing.T) {
	t.Helper()
	type idle struct {
		p     streamProtocol
		typed *io.PipeWriter
		said  *bufio.Reader
		ended chan error
	}
	var all []idle
	for _, p := range streamProtocols {
		in, typed := io.Pipe()
		said, shown := io.Pipe()
		one := idle{p, typed, bufio.NewReader(said), make(chan error, 1)}
		go func() {
			err := s.exec(t.Context(), p, stdio{Stdin: in, Stdout: shown}, "cat")
			_ = shown.CloseWithError(io.EOF)
			one.ended <- err
		}()
		_, err := io.WriteString(typed, "first\n")
		must(t, err)
		if line, err := one.said.ReadString('\n'); err != nil || line != "first\n" {
			t.Fatalf("%s: %q, %v", p.name, line, err)
		}
		all = append(all, one)
	}
	since := time.NewTimer(idleFor)
	return func(t *testing.T) {
		<-since.C
		for _, one := range all {
			_, err := io.WriteString(one.typed, "second\n")
			must(t, err)
			if line, err := one.said.ReadString('\n'); err != nil || line != "second\n" {
				t.Errorf("%s, after %s without traffic: %q, %v", one.p.name, idleFor, line, err)
			}
			must(t, one.typed.Close())
			if err := <-one.ended; err != nil {
				t.Errorf("%s: the stream ended with %v", one.p.name, err)
			}
		}
	}
}

// open opens a stream of each kind. It returns the number of streams, and a channel on which they
// report their end.
func (s *streams) open(t *testing.T) (n int, ends chan error) {
	t.Helper()
	ends = make(chan error, 100)
	for _, p := range streamProtocols {
		in, typed := io.Pipe()
		said, shown := io.Pipe()
		go func() {
			err := s.exec(t.Context(), p, stdio{Stdin: in, Stdout: shown}, "cat")
			_ = shown.CloseWithError(io.EOF)
			_ = in.Close()
			if p.name == "SPDY" && err == nil {
				// The client treats the end of the connection as the end of the command, whichever
				// server it asks (client-go, watchErrorStream).
				err = io.EOF
			}
			ends <- err
		}()
		go func() { _, _ = io.Copy(typed, endless{}) }() // in the middle of the stream
		_, err := io.ReadFull(said, make([]byte, 1<<20))
		must(t, err)
		go func() { _, _ = io.Copy(io.Discard, said) }()

		local, stop := s.forward(t, p, t.Context())
		conn, err := net.Dial("tcp", local)
		must(t, err)
		_, err = io.ReadFull(conn, make([]byte, len("echo:")))
		must(t, err)
		go func() {
			_, err := io.Copy(io.Discard, conn)
			_ = conn.Close()
			ends <- errors.Join(err, io.EOF) // an orderly end counts too
			_ = stop()
		}()
		n += 2
	}
	lines, err := s.client.CoreV1().Pods(workload.Namespace).GetLogs(streamsPod, &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	must(t, err)
	s.kubelet.logs.write(t, "a line")
	go func() {
		_, err := io.Copy(io.Discard, lines)
		_ = lines.Close()
		ends <- errors.Join(err, io.EOF)
	}()
	return n + 1, ends
}

// endless is text that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// allEnd waits until the streams have ended. Each must end with an error if a client can know of
// one, because a stream that was cut off must not look like a successful command.
func (s *streams) allEnd(t *testing.T, n int, ends chan error) {
	t.Helper()
	limit := time.After(time.Minute)
	for i := range n {
		select {
		case err := <-ends:
			if err == nil {
				t.Error("a stream that was cut has ended without an error")
			}
		case <-limit:
			t.Fatalf("%d of %d streams have ended", i, n)
		}
	}
	eventually(t, "the processes of the streams have ended in the pod", time.Minute, func() bool { return s.kubelet.running.Load() == 0 })
}

func (s *streams) drained(t *testing.T, before usages) {
	n, ends := s.open(t)
	s.stop(t)
	s.allEnd(t, n, ends)
	s.start(t)
	s.echo(t, streamProtocols[0], []byte("again"))
	s.nothingLeft(t, before)
}

func (s *streams) peersDrained(t *testing.T) {
	own, err := s.asProcess().read(t.Context(), usageMetrics...)
	must(t, err)
	n, ends := s.open(t)
	for _, peer := range sidecarsOfRun(t) {
		peer.signal(t, syscall.SIGTERM)
	}
	s.allEnd(t, n, ends)
	s.asProcess().settlesLike(t, own)
}

// usages are the measures of sidecars, by name.
type usages map[string]map[string]float64

// census measures the sidecar and the sidecars of its peers.
func (s *streams) census(t *testing.T) usages {
	t.Helper()
	all := usages{}
	for _, one := range append(sidecarsOfRun(t), s.asProcess()) {
		var err error
		all[one.name], err = one.read(t.Context(), usageMetrics...)
		must(t, err)
	}
	return all
}

// nothingLeft checks that no stream left anything behind. The number of streams so far is much
// larger than the number of connections that are kept.
func (s *streams) nothingLeft(t *testing.T, before usages) {
	t.Helper()
	for _, one := range append(sidecarsOfRun(t), s.asProcess()) {
		one.settlesLike(t, before[one.name])
	}
}
