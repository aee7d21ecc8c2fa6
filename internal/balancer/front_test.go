package balancer

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// exhausted is a listener whose Accept fails a few times.
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
		(&Front{Pool: testPool(t)}).accept(&exhausted{times: 4})
		if took, want := time.Since(began), 4*acceptPause; took != want {
			t.Errorf("tried four times in %s, want %s", took, want)
		}
	})
}

// If one side has ended its stream, the connection must still carry the data of the other side.
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
	p := testPool(t)
	p.Set([]string{l.Addr().String()})
	f := &Front{Pool: p}
	if err := f.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
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

// A connection that is older than MaxAge is closed, although neither side wants to end it.
func TestOldConnectionsAreClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p := testPool(t)
	p.Set([]string{l.Addr().String()})
	f := &Front{Pool: p, MaxAge: 10 * time.Millisecond}
	if err := f.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	conn, err := net.Dial("tcp", f.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = accepted.Close() }()
	for name, c := range map[string]net.Conn{"client": conn, "server": accepted} {
		if text, _ := io.ReadAll(c); len(text) > 0 { // go test's own time limit ends the wait
			t.Errorf("the %s read %q", name, text)
		}
	}
}
