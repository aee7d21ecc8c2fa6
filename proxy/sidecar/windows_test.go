package sidecar

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// settings connects to a server of this world over HTTP/2. It returns the settings that the server
// announces, and the window of the connection.
func (w *world) settings(address string) (map[http2.SettingID]uint32, uint32) {
	t := w.t
	t.Helper()
	conn := w.dial(address)
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.SetMaxReadFrameSize(1<<24 - 1)
	if err := errors.Join(framer.WriteSettings(), framer.WritePing(false, [8]byte{})); err != nil {
		t.Fatal(err)
	}
	announced, window := map[http2.SettingID]uint32{}, uint32(1<<16-1) // RFC 9113, 6.9.2
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := frame.(type) {
		case *http2.PingFrame: // the answer to our ping: all announcements arrived before it
			return announced, window
		case *http2.SettingsFrame:
			_ = f.ForeachSetting(func(s http2.Setting) error {
				announced[s.ID] = s.Val
				return nil
			})
		case *http2.WindowUpdateFrame:
			if f.StreamID == 0 {
				window += f.Increment
			}
		}
	}
}

// The front door announces the same values as a kube-apiserver (k8s.io/apiserver,
// secure_serving.go).
func TestWindowsAreThoseOfAKubeAPIServer(t *testing.T) {
	a, r := one(t)
	want, wantWindow := r.settings(a.server.Listener.Addr().String())
	got, window := r.settings(r.front)
	for _, id := range []http2.SettingID{http2.SettingMaxConcurrentStreams, http2.SettingInitialWindowSize, http2.SettingMaxFrameSize} {
		if got[id] != want[id] {
			t.Errorf("%v is %d, and a kube-apiserver's %d", id, got[id], want[id])
		}
	}
	if window != wantWindow {
		t.Errorf("the window of a connection is %d, and a kube-apiserver's %d", window, wantWindow)
	}
	if want[http2.SettingMaxConcurrentStreams] != 100 || want[http2.SettingInitialWindowSize] != 256<<10 || wantWindow != 100*256<<10 {
		t.Errorf("this test compares with %v and a window of %d, which are not a kube-apiserver's", want, wantWindow)
	}
}

// Uploads that no handler reads must not delay a short write on the same connection. A front proxy
// and an upstream peer send the requests of all users on one connection.
func TestUploadsThatWaitHoldNobodyBack(t *testing.T) {
	const uploads, window = 4, 256 << 10
	released := make(chan struct{})
	door, client := frontDoorOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-released
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	post := func(path string, body io.Reader) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, door+path, body)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	var sent atomic.Int64
	var running sync.WaitGroup
	for range uploads {
		running.Go(func() {
			_ = post("/slow", io.TeeReader(io.LimitReader(zeros{}, 3<<20), writerFunc(func(p []byte) (int, error) {
				sent.Add(int64(len(p)))
				return len(p), nil
			})))
		})
	}
	await(t, "the windows of the uploads are full", func() bool { return sent.Load() >= uploads*window })
	short := make(chan error, 1)
	go func() { short <- post("/", strings.NewReader(strings.Repeat("x", 1000))) }()
	select {
	case err := <-short:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a write of 1,000 bytes waits for uploads that no handler reads")
	}
	close(released)
	running.Wait()
}

// zeros is an endless body of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// frontDoorOf serves a handler at a front door. It returns the URL of the front door, and a client
// with one HTTP/2 connection.
func frontDoorOf(t *testing.T, handler http.Handler) (string, *http.Client) {
	t.Helper()
	w := newWorld(t)
	certificate := w.serving.tls(t)
	door := newFrontDoor(handler, NewOptions().frontLimits(), func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}, nil
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- door.serve(l) }()
	t.Cleanup(func() {
		door.server.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "https://" + l.Addr().String(), w.client(nil, true)
}
