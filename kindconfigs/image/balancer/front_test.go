package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// exhausted has no connection to give, a few times.
type exhausted struct {
	net.Listener
	times int
}

func (e *exhausted) Accept() (net.Conn, error) {
	if e.times--; e.times < 0 {
		return nil, net.ErrClosed
	}
	return nil, syscall.EMFILE
}

func TestNoConnectionToGiveIsNoReasonToSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		(&front{}).accept(&exhausted{times: 4})
		if took, want := time.Since(began), 4*acceptPause; took != want {
			t.Errorf("tried four times in %s, want %s", took, want)
		}
	})
}

// start runs the balancer on files, and returns its address.
func start(t *testing.T, cdsText string) (address, dir string) {
	t.Helper()
	address, dir = gone(t), t.TempDir()
	write(t, dir, "lds.yaml", empty)
	write(t, dir, "cds.yaml", empty)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, dir) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	write(t, dir, "cds.yaml", cdsText)
	write(t, dir, "lds.yaml", lds(address))
	return address, dir
}

// write replaces a file as kind does.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

// awaitAnswer asks on new connections until the answer is the one wanted.
func awaitAnswer(t *testing.T, address, want string) {
	t.Helper()
	client := newPool().client // which verifies nobody, as the test servers' names are not for this address
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		resp, err := client.Get("https://" + address + "/")
		if err == nil {
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(text) == want {
				return
			}
		}
		<-ticker.C // go test's own time limit ends it
	}
}

// kind starts it with empty files, and the first server comes up long before the others do.
func TestBalancerWhileAClusterIsMade(t *testing.T) {
	only := serveTLS(t, "only", true)
	address, dir := start(t, cds(gone(t), only, gone(t)))
	awaitAnswer(t, address, "only")

	other := serveTLS(t, "other", true)
	write(t, dir, "cds.yaml", cds(other))
	awaitAnswer(t, address, "other")
}

// A connection that one side has ended must still carry what the other side has to say.
func TestHalfClosedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				text, _ := io.ReadAll(conn)
				_, _ = fmt.Fprintf(conn, "got %s", text)
				_ = conn.Close()
			}()
		}
	}()
	p := newPool()
	p.set([]string{l.Addr().String()})
	f := &front{pool: p}
	if err := f.listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer f.close()
	conn, err := net.Dial("tcp", f.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "all"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "got all" {
		t.Errorf("got %q, %v", answer, err)
	}
}
