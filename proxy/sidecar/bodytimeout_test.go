package sidecar

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/replay"
)

// deadlines is a ResponseWriter that records read deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

func TestReadDeadlineLastsUntilTheEndOfTheBody(t *testing.T) {
	for name, c := range map[string]struct {
		body    io.Reader
		path    string
		upgrade string
		want    int // deadlines
	}{
		"none":       {body: nil, want: 0},
		"a body":     {body: strings.NewReader("body"), want: 2},
		"an upgrade": {upgrade: "websocket", want: 0},
		"a request that only claims to be an upgrade": {body: strings.NewReader("body"), upgrade: "websocket", want: 2}, // it has a deadline, although the client calls it an upgrade
		"an upgrade to a pod":                         {body: strings.NewReader("body"), path: "api/v1/namespaces/n/pods/p/exec", upgrade: "websocket", want: 3},
		"an object":                                   {body: strings.NewReader("body"), path: "api/v1/namespaces/n/pods", want: 2},
		"an upload to a pod":                          {body: strings.NewReader("body"), path: "api/v1/namespaces/n/pods/p/proxy/upload", want: 3},
		"an upload to a service":                      {body: strings.NewReader("body"), path: "api/v1/namespaces/n/services/s/proxy/upload", want: 3},
		"an upload, the older path":                   {body: strings.NewReader("body"), path: "api/v1/proxy/namespaces/n/pods/p/upload", want: 3}, // renewed once
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/"+c.path, c.body)
			r.Header.Set("Upgrade", c.upgrade)
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			withInfo(limitBodyTime(time.Minute, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil {
					t.Error(err)
				}
			}))).ServeHTTP(w, r)
			if len(w.set) != c.want {
				t.Fatalf("deadlines %v, want %d", w.set, c.want)
			}
			if c.want > 0 && (w.set[0].IsZero() || !w.set[c.want-1].IsZero()) {
				t.Errorf("deadlines %v, want that the last is lifted", w.set)
			}
		})
	}
}

// Shutdown waits for short requests and cuts long-running ones.
func TestLongRunning(t *testing.T) {
	for target, want := range map[string]bool{
		"/api/v1/pods":                                      false,
		"/api/v1/pods?watch=0":                              false,
		"/api/v1/pods?watch=False":                          false,
		"/api/v1/pods?watch=1":                              true,
		"/api/v1/pods?watch=True":                           true, // Python's client
		"/apis/apps/v1/deployments?watch=yes":               true,
		"/api/v1/watch/pods":                                true,
		"/api/v1/namespaces/n/pods/p":                       false,
		"/api/v1/namespaces/n/pods/p/log?follow=True":       true,
		"/api/v1/namespaces/n/pods/p/exec?command=sh":       true,
		"/api/v1/namespaces/n/services/s/proxy/events":      true,
		"/api/v1/nodes/n/proxy/stats":                       true,
		"/apis/example.com/v1/namespaces/n/widgets/w/scale": false,
		"/healthz?watch=true":                               false,
	} {
		got := false
		withInfo(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = longRunning(r) })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
		if got != want {
			t.Errorf("%s: may last %t, want %t", target, got, want)
		}
	}
}

// If the client aborts an upload, the local server does not count as failing.
func TestAbortedBodyIsABadRequest(t *testing.T) {
	l := newLocal(mustURL(t, "https://127.0.0.1:1"), fakeTransport(func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return nil, err
	}), &headerNames{own: standardNames}, slog.New(slog.DiscardHandler))
	for err, want := range map[error]int{io.ErrUnexpectedEOF: http.StatusBadRequest, os.ErrDeadlineExceeded: http.StatusGatewayTimeout} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, common, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)))
		l.ServeHTTP(w, r)
		if w.Code != want || l.failing.Load() {
			t.Errorf("%v: %d %s, the local server failing %t; want %d and not", err, w.Code, w.Body, l.failing.Load(), want)
		}
	}
	l.proxy.Transport = fakeTransport(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	w := httptest.NewRecorder()
	l.ServeHTTP(w, httptest.NewRequest(http.MethodPost, common, io.MultiReader(strings.NewReader("whole"))))
	if w.Code != http.StatusServiceUnavailable || !l.failing.Load() {
		t.Errorf("a local server that breaks off: %d, failing %t; want 503", w.Code, l.failing.Load())
	}
}

func TestBodyTimeoutEndsTheRequest(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		ended := make(chan error, 1)
		s := httptest.NewUnstartedServer(limitBodyTime(10*time.Millisecond, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			ended <- err
		})))
		s.EnableHTTP2 = http2
		s.StartTLS()
		never, release := io.Pipe()
		r, err := http.NewRequest(http.MethodPost, s.URL, never)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 100
		done := make(chan struct{})
		go func() {
			defer close(done)
			if answer, err := s.Client().Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("HTTP/2 %t: reading ended with %v, want %v", http2, err, os.ErrDeadlineExceeded)
		}
		_ = release.Close()
		<-done
		s.Close()
	}
}

// On the paths of streams, a client must not hold a request by sending nothing.
func TestStreamsHaveADeadlineUntilTheyAreAnswered(t *testing.T) {
	const path = "/api/v1/namespaces/n/pods/p/proxy/upload"
	for _, http2 := range []bool{false, true} {
		read := make(chan error, 1)
		s := httptest.NewUnstartedServer(withInfo(limitBodyTime(10*time.Millisecond, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		}))))
		s.EnableHTTP2 = http2
		s.StartTLS()
		body, client := io.Pipe()
		r, err := http.NewRequest(http.MethodPost, s.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 100
		done := make(chan struct{})
		go func() {
			defer close(done)
			if answer, err := s.Client().Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		select {
		case err := <-read:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("HTTP/2 %t: reading ended with %v, want %v", http2, err, os.ErrDeadlineExceeded)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("HTTP/2 %t: a request whose body does not come is held", http2)
		}
		_ = client.Close()
		<-done
		s.Close()
	}
	// After the answer has begun, bytes go both ways at any pace.
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	withInfo(limitBodyTime(time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints) // not the final answer
		_, _ = io.ReadFull(r.Body, make([]byte, 2))
		w.WriteHeader(http.StatusOK)
		_, _ = io.ReadAll(r.Body)
	}))).ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("body")))
	if len(w.set) != 3 || w.set[1].IsZero() || !w.set[2].IsZero() {
		t.Errorf("deadlines %v, want one, one after the first bytes, and none after the answer began", w.set)
	}
}

// A client that announces bodies and does not send them must not make the sidecar use memory for
// them.
func TestAnnouncedBodiesTakeNoMemory(t *testing.T) {
	const requests = 2200
	l := newLocal(mustURL(t, "https://127.0.0.1:1"), fakeTransport(func(*http.Request) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	}), &headerNames{own: standardNames}, slog.New(slog.DiscardHandler))
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	never, end := io.Pipe()
	var waiting atomic.Int64
	var running sync.WaitGroup
	for range requests {
		running.Go(func() {
			body := io.MultiReader(strings.NewReader("x"), readerFunc(func(p []byte) (int, error) {
				waiting.Add(1)
				return never.Read(p)
			}))
			r := httptest.NewRequest(http.MethodPost, common, body)
			r.ContentLength = replay.Bound
			r = r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: "mallory"}))
			defer func() { _ = recover() }() // the client has closed its connection
			l.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	await(t, "every request waits for its body", func() bool { return waiting.Load() == requests })
	if took, most := heap()-before, int64(requests*16<<10); took > most {
		t.Errorf("%d requests whose bodies did not come take %d KiB, want at most %d", requests, took>>10, most>>10)
	}
	_ = end.CloseWithError(io.ErrUnexpectedEOF)
	running.Wait()
	if n := l.bodies.Used(); n != 0 {
		t.Errorf("%d bytes of the budget are still taken", n)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
