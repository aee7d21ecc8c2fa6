package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy/internal/replay"
)

// alarm is a clock. Its only timer rings when the test says so.
type alarm struct {
	mu      sync.Mutex
	set     []time.Duration
	ring    func()
	stopped int
}

func (a *alarm) afterFunc(d time.Duration, f func()) func() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set = append(a.set, d)
	rang := false
	a.ring = func() { rang = true; f() }
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.stopped++
		return !rang
	}
}

func TestAttemptTimeout(t *testing.T) {
	t.Run("expires, and the next peer is asked", func(t *testing.T) {
		var clock alarm
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Host, "b.") {
				return says(200, "b"), nil
			}
			clock.ring()
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "b" {
			t.Errorf("%d %s, want b's answer", got.Code, got.Body)
		}
		if diff := cmp.Diff([]string{"a undecided", "b answered"}, s.seen.outcomes()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if got := s.seen.attempts[0].Err; got != errNoAnswerInTime {
			t.Errorf("the attempt failed with %v, want %v", got, errNoAnswerInTime)
		}
	})
	t.Run("expires when the headers arrive", func(t *testing.T) {
		var clock alarm
		closed := false
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			clock.ring()
			answer := says(200, "late")
			answer.Body = closeFunc{answer.Body, func() { closed = true }}
			return answer, nil
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		if got := s.ask("GET", gadgetsPath, ""); got.Code != 503 || !closed {
			t.Errorf("%d %s, body closed: %v; want 503, since reading the body would fail", got.Code, got.Body, closed)
		}
	})
	t.Run("expires after the headers have arrived", func(t *testing.T) {
		// A timer's function runs on a goroutine of its own. So stop may come too late to stop the
		// function, and yet before the function has done anything.
		var ring func()
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			answer := says(200, "")
			answer.Body = io.NopCloser(io.MultiReader(readerFunc(func([]byte) (int, error) {
				ring()
				return 0, errorOr(r.Context().Err(), io.EOF)
			}), strings.NewReader("whole")))
			return answer, nil
		}), func(c *Config) {
			c.AfterFunc = func(_ time.Duration, f func()) func() bool { ring = f; return func() bool { return false } }
		})
		if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "whole" {
			t.Errorf("%d %s, want the answer that arrived before the deadline", got.Code, got.Body)
		}
	})
	t.Run("does not bound the body", func(t *testing.T) {
		var clock alarm
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
			answer := says(200, "")
			answer.ContentLength = -1
			answer.Body = io.NopCloser(io.MultiReader(readerFunc(func([]byte) (int, error) {
				if r.Context().Err() != nil || clock.stopped != 1 {
					t.Errorf("while the body is read: context %v, timers stopped %d", r.Context().Err(), clock.stopped)
				}
				return 0, io.EOF
			}), strings.NewReader("whole")))
			return answer, nil
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "whole" {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
	t.Run("waits for a slow client", func(t *testing.T) {
		var clock alarm
		var mu sync.Mutex
		now := epoch
		pass := func(d time.Duration) { // pass lets time pass until the timer rings
			mu.Lock()
			now = now.Add(d)
			mu.Unlock()
			clock.ring()
		}
		reader, writer := io.Pipe()
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			now = now.Add(5 * time.Second)
			mu.Unlock()
			b := make([]byte, 4)
			if n, err := r.Body.Read(b); err != nil || n != 4 {
				t.Errorf("read %d, %v", n, err)
			}
			pass(20 * time.Second) // the last byte arrived 20 s ago: 5 s are left
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r.Body.Read(b)
			}()
			until(t, "the client to be waited for", r.Body.(*replay.Reader).Waiting)
			pass(5 * time.Second) // no data arrived, because the client does not send
			if r.Context().Err() != nil {
				t.Error("given up while the client was sending")
			}
			writer.Write([]byte("body"))
			<-ended
			if pass(24 * time.Second); r.Context().Err() != nil {
				t.Error("given up before the peer had its time")
			}
			pass(time.Second) // now the peer is to blame
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), func(c *Config) {
			c.AfterFunc = clock.afterFunc
			c.Now = func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return now
			}
		})
		go writer.Write([]byte("slow"))
		s.serve(httptest.NewRequest("POST", gadgetsPath, reader))
		if diff := cmp.Diff([]string{"a undecided"}, s.seen.outcomes()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if want := []time.Duration{25 * time.Second, 5 * time.Second, 25 * time.Second, time.Second}; !slices.Equal(clock.set, want) {
			t.Errorf("timers %v, want %v", clock.set, want)
		}
	})
	t.Run("a write may take longer", func(t *testing.T) {
		var clock alarm
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) {
			return says(201, "done"), nil
		}), func(c *Config) { c.AfterFunc = clock.afterFunc })
		if got := s.ask("POST", gadgetsPath, "x"); got.Body.String() != "done" {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		if diff := cmp.Diff([]time.Duration{25 * time.Second}, clock.set); diff != "" {
			t.Errorf("timers (-want +got):\n%s", diff)
		}
	})
	for target, want := range map[string][]time.Duration{
		gadgetsPath:                 {10 * time.Second},
		gadgetsPath + "?watch=true": {10 * time.Second},
		"/api/v1/namespaces/n/pods/p/log?follow=true": nil,
		"/api/v1/namespaces/n/pods/p/proxy/x":         nil,
		"/api/v1/namespaces/n/pods/p/exec":            nil,
	} {
		t.Run(target, func(t *testing.T) {
			var clock alarm
			sub := func(name string) Resource { return Resource{Version: "v1", Resource: "pods", Subresource: name} }
			s := newShell(t, Reference(), []Event{LocalFetched{At: epoch}, PeerAppeared{ID: "a"}, PeerAddress{ID: "a", Address: "a.test:1"}, Fetched{At: epoch, Results: []FetchResult{
				{ID: "a", Roots: [roots]RootResult{{Groups: groups(sub("log"), sub("proxy"), sub("exec"))}, {Groups: groups(gadget)}}},
			}}, Synced{}}, transportFunc(func(r *http.Request) (*http.Response, error) { return says(200, "peer"), nil }),
				func(c *Config) { c.AfterFunc = clock.afterFunc })
			if got := s.ask("GET", target, ""); got.Body.String() != "peer" {
				t.Fatalf("%d %s, want the peer's answer", got.Code, got.Body)
			}
			if diff := cmp.Diff(want, clock.set); diff != "" {
				t.Errorf("timers (-want +got):\n%s", diff)
			}
		})
	}
}

// errorOr returns the first error that is not nil.
func errorOr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

type closeFunc struct {
	io.Reader
	close func()
}

func (c closeFunc) Close() error { c.close(); return nil }
