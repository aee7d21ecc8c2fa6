package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// idleFor is longer than the server's --request-timeout.
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
