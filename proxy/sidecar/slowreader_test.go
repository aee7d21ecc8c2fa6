package sidecar

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// byFrames requests a path over HTTP/2 on a number of streams, each with the given window. After
// that it only answers pings, until the connection ends.
func (w *world) byFrames(address, path string, streams int, window uint32) (closeConn func()) {
	t := w.t
	t.Helper()
	conn := w.dial(address)
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	var block headerBlock
	for i := range streams {
		if err := framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), EndStream: true, EndHeaders: true,
			BlockFragment: block.of(":method", "GET", ":scheme", "https", ":authority", "x", ":path", path),
		}); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if ping, ok := frame.(*http2.PingFrame); ok && !ping.IsAck() {
				_ = framer.WritePing(true, ping.Data)
			}
		}
	}()
	return func() {
		_ = conn.Close()
		<-ended
	}
}

// headerBlock encodes headers, given as name and value in turn.
type headerBlock struct {
	to      sliceWriter
	encoder *hpack.Encoder
}

type sliceWriter struct{ bytes []byte }

func (s *sliceWriter) Write(p []byte) (int, error) {
	s.bytes = append(s.bytes, p...)
	return len(p), nil
}

func (h *headerBlock) of(pairs ...string) []byte {
	if h.encoder == nil {
		h.encoder = hpack.NewEncoder(&h.to)
	}
	h.to.bytes = nil
	for i := 0; i < len(pairs); i += 2 {
		_ = h.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return h.to.bytes
}

// A client that reads nothing must not hold an answer.
func TestAnswersThatNobodyReadsEnd(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for name, answer := range map[string]func(io.Writer) error{
			"endless": func(w io.Writer) error {
				_, err := io.Copy(w, zeros{})
				return err
			},
			"one write": func(w io.Writer) error {
				_, err := w.Write(make([]byte, 64<<20))
				return err
			},
		} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", name, http2), func(t *testing.T) {
				const streams = 50
				ended := make(chan error, streams)
				s := httptest.NewUnstartedServer(limitWriteTime(50*time.Millisecond, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					ended <- answer(w)
				})))
				w := newWorld(t)
				s.EnableHTTP2 = true
				s.TLS = &tls.Config{Certificates: []tls.Certificate{w.serving.tls(t)}, MinVersion: tls.VersionTLS12}
				s.StartTLS()
				defer s.Close()
				n := streams
				if http2 {
					defer w.byFrames(s.Listener.Addr().String(), "/", streams, 0)()
				} else {
					n = 1
					conn := w.dialBy(s.Listener.Addr().String(), "http/1.1")
					defer conn.Close()
					if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
						t.Fatal(err)
					}
				}
				for range n {
					select {
					case err := <-ended:
						if err == nil {
							t.Error("the whole answer was written, although the client did not read it")
						}
					case <-time.After(20 * time.Second):
						t.Fatal("an answer that the client does not read is held")
					}
				}
			})
		}
	}
}

// slowWriter is a ResponseWriter whose writes each take some time. It records write deadlines.
type slowWriter struct {
	*httptest.ResponseRecorder
	takes time.Duration
	mu    sync.Mutex
	set   []time.Time
}

func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(w.takes)
	return len(p), nil
}

func (w *slowWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set = append(w.set, t)
	return nil
}

// An answer continues as long as the client reads. The cases are a long answer that is read slowly,
// a watch without events, and the next request of a connection.
func TestAnswersThatAreReadLiveOn(t *testing.T) {
	const within = 30 * time.Second
	for name, c := range map[string]struct {
		takes time.Duration
		size  int
		ends  bool
	}{
		"read slowly":           {within - time.Second, 10 * writePart, false},
		"one part too slowly":   {within + time.Second, writePart, true},
		"several, each in time": {within * 9 / 10, 2*writePart + 1, false},
		"empty":                 {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), takes: c.takes}
				var n int
				var end time.Time
				limitWriteTime(within, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(24 * time.Hour) // no event
					n, _ = w.Write(make([]byte, c.size))
					time.Sleep(24 * time.Hour)
					end = time.Now()
				})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				if n != c.size {
					t.Errorf("%d of %d bytes were written", n, c.size)
				}
				want := 2 // no deadline for this request, and a deadline after it
				if c.ends {
					want = 3
				}
				if len(w.set) != want || !w.set[0].IsZero() || !w.set[len(w.set)-1].Equal(end.Add(within)) {
					t.Fatalf("write deadlines %v, want %d: none at first, and one for the rest at the end", w.set, want)
				}
				if c.ends && !w.set[1].Before(end.Add(-24*time.Hour)) {
					t.Errorf("the write was ended at %v, want at once", w.set[1])
				}
			})
		})
	}
}

// Bytes of another server's answer wait here, in a window, until the client reads them. The test
// checks the window that the transport announces.
func TestAnswersHaveSmallWindows(t *testing.T) {
	w := newWorld(t)
	certificate := w.serving.tls(t)
	l := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	announced := make(chan map[http2.SettingID]uint32, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		got := map[http2.SettingID]uint32{}
		defer func() { announced <- got }()
		buffered := bufio.NewReader(conn)
		if _, err := io.ReadFull(buffered, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		if frame, err := http2.NewFramer(conn, buffered).ReadFrame(); err == nil {
			_ = frame.(*http2.SettingsFrame).ForeachSetting(func(s http2.Setting) error {
				got[s.ID] = s.Val
				return nil
			})
		}
	})
	transport := newTransport(time.Hour, 0, func() *tls.Config {
		return &tls.Config{RootCAs: pool(w.ca), ServerName: peerServerName, MinVersion: tls.VersionTLS12}
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := transport.RoundTrip(request); err == nil {
		_ = answer.Body.Close()
	}
	if got := (<-announced)[http2.SettingInitialWindowSize]; got != streamWindow {
		t.Errorf("an answer may fill %d bytes here while its client does not read, want %d", got, streamWindow)
	}
	transport.close()
	_ = l.Close()
	serving.Wait()
}
