package sim

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
)

// closing is the last message on a WebSocket that ends in order (RFC 6455, 5.5.1).
const closing = "\x88\x00"

// socketHeader are the headers of a client that asks for a WebSocket (RFC 6455, 4.1), in canonical
// form.
var socketHeader = http.Header{
	"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"c2tld3Byb29mIHNrZXdwcg=="},
}

// upgradeHeader returns the headers of a client that asks for an upgrade to a protocol; "" is
// WebSocket.
func upgradeHeader(protocol string) http.Header {
	if protocol == "" {
		return socketHeader
	}
	return http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}}
}

// switching is the head of the answer to such a request.
const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

// wantsSocket reports whether a request asks for a WebSocket.
func wantsSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// splice copies data from the peer to the client, in the task of the request. Simulated clients
// send nothing on an upgraded connection.
func splice(_ context.Context, client, peer io.ReadWriteCloser, _ io.Reader) {
	_, _ = io.Copy(client, peer)
	_ = client.Close()
	_ = peer.Close()
}

// wire is the connection of a request after its handler has hijacked it. No caller needs addresses
// or deadlines.
type wire struct {
	net.Conn
	w      *responder
	head   []byte // of the answer, while it is not complete
	begun  bool
	closed bool
}

// Hijack gives the connection to the handler.
func (w *responder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.status != 0 || w.taken != nil {
		return nil, nil, http.ErrHijacked
	}
	w.taken = &wire{w: w}
	return w.taken, bufio.NewReadWriter(bufio.NewReader(w.taken), bufio.NewWriter(w.taken)), nil
}

// Read waits until the client closes the connection, because the client sends nothing.
func (c *wire) Read([]byte) (int, error) {
	x := c.w.x
	for x.context.err == nil && !c.closed {
		x.task.Wait()
	}
	return 0, io.EOF
}

// Write sends the head of an answer once it is complete, and then all further data.
func (c *wire) Write(p []byte) (int, error) {
	x := c.w.x
	if x.context.err != nil || c.closed {
		return 0, errReset
	}
	rest := p
	if !c.begun {
		c.head = append(c.head, p...)
		end := bytes.Index(c.head, []byte("\r\n\r\n"))
		if end < 0 {
			return len(p), nil
		}
		answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(c.head)), nil) //nolint:bodyclose // it reads from memory
		if err != nil {
			return 0, err
		}
		c.begun = true
		x.noteStatus(answer.StatusCode)
		x.back(headerBytes, part{status: answer.StatusCode, header: answer.Header})
		rest = c.head[end+4:]
	}
	if len(rest) > 0 {
		x.said = append(x.said, rest...)
		x.back(len(rest), part{said: len(rest)})
	}
	return len(p), nil
}

// Close ends the connection for both the handler and the client.
func (c *wire) Close() error {
	if !c.closed {
		c.closed = true
		c.w.x.back(0, part{ends: true})
	}
	return nil
}

// socketBody is the body of an answer with status 101, which can also be written.
type socketBody struct{ *answerBody }

// Write discards the data for the peer.
func (socketBody) Write(p []byte) (int, error) { return len(p), nil }
