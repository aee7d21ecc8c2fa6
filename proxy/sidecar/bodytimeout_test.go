package sidecar

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
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
		"none":                      {body: nil, want: 0},
		"a body":                    {body: strings.NewReader("body"), want: 2},
		"an upgrade":                {upgrade: "websocket", want: 0},
		"one that is none":          {body: strings.NewReader("body"), upgrade: "websocket", want: 2}, // whatever the client calls it
		"an upgrade to a pod":       {body: strings.NewReader("body"), path: "api/v1/namespaces/n/pods/p/exec", upgrade: "websocket", want: 0},
		"an object":                 {body: strings.NewReader("body"), path: "api/v1/namespaces/n/pods", want: 2},
		"an upload to a pod":        {body: strings.NewReader("body"), path: "api/v1/namespaces/n/pods/p/proxy/upload", want: 0},
		"an upload to a service":    {body: strings.NewReader("body"), path: "api/v1/namespaces/n/services/s/proxy/upload", want: 0},
		"an upload, the older path": {body: strings.NewReader("body"), path: "api/v1/proxy/namespaces/n/pods/p/upload", want: 0},
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
			if c.want == 2 && (w.set[0].IsZero() || !w.set[1].IsZero()) {
				t.Errorf("deadlines %v, want one, and that it is lifted", w.set)
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
	for _, err := range []error{io.ErrUnexpectedEOF, os.ErrDeadlineExceeded} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, common, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)))
		l.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || l.failing.Load() {
			t.Errorf("%v: %d %s, the local server failing %t; want 400 and not", err, w.Code, w.Body, l.failing.Load())
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
