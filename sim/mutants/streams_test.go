package mutants

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// unflushed sends nothing until the answer is complete.
type unflushed struct {
	http.ResponseWriter
	acted func()
}

func (w unflushed) Flush()                   { w.acted() }
func (w unflushed) CloseNotify() <-chan bool { return nil }
func (w unflushed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// unbroken is a body that seems to end where it breaks off.
type unbroken struct {
	io.ReadCloser
	acted func()
}

func (b *unbroken) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.acted()
		err = io.EOF
	}
	return n, err
}
