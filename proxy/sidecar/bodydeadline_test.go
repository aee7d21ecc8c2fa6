package sidecar

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const upload = "/api/v1/namespaces/n/pods/p/proxy/upload" // a stream

// The first deadline of a body is that of its request, if this is a short one. A stream has its
// own.
func TestFirstDeadlineOfABody(t *testing.T) {
	const within = time.Minute
	for name, c := range map[string]struct {
		path string
		ends time.Duration // of the request; 0: it has no end
		want time.Duration
	}{
		"without an end":                {common, 0, within},
		"ends before":                   {common, 10 * time.Second, 10 * time.Second},
		"ends later":                    {common, 2 * within, within},
		"a stream":                      {upload, 0, within},
		"a stream whose client hurries": {upload, 10 * time.Second, within},
		"a stream that ends later":      {upload, 2 * within, within},
	} {
		for length, limited := range map[int64]bool{-1: true, 0: false, 1: true, 7: true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.ends > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.ends)
				}
				defer cancel()
				r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader("body")).WithContext(ctx)
				r.ContentLength = length
				w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
				served := false
				withInfo(limitBodyTime(within, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))).ServeHTTP(w, r)
				if !served || limited != (len(w.set) > 0) || limited && !w.set[0].Equal(time.Now().Add(c.want)) {
					t.Errorf("%s, of length %d: served %t, deadlines %v, want %t, after %s", name, length, served, w.set, limited, c.want)
				}
			})
		}
	}
	for name, body := range map[string]io.ReadCloser{"no body": nil, "an empty one": http.NoBody} {
		r := httptest.NewRequest(http.MethodPost, common, nil)
		r.Body, r.ContentLength = body, -1
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		limitBodyTime(within, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if len(w.set) > 0 {
			t.Errorf("%s: deadlines %v", name, w.set)
		}
	}
}

// What sets the deadline of a body again, what lifts it for good, and what does neither.
func TestWhatLiftsTheDeadlineOfABody(t *testing.T) {
	read := func(n int) func(http.ResponseWriter, *http.Request) {
		return func(_ http.ResponseWriter, r *http.Request) { _, _ = r.Body.Read(make([]byte, n)) }
	}
	all := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	answer := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		does   func(http.ResponseWriter, *http.Request)
		stream string // r: set again, l: lifted, -: neither
		short  string
	}{
		"some of it is read":  {read(2), "r", "-"},
		"nothing of it":       {read(0), "-", "-"},
		"all of it is read":   {all, "l", "l"},
		"an early answer":     {answer(103), "-", "-"},
		"the last early one":  {answer(199), "-", "-"},
		"an answer":           {answer(200), "l", "-"},
		"a refusal":           {answer(403), "l", "-"},
		"a part of an answer": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }, "l", "-"},
		"it is flushed":       {func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, "l", "-"},
		"it is taken over":    {func(w http.ResponseWriter, _ *http.Request) { _, _, _ = http.NewResponseController(w).Hijack() }, "l", "-"},
		"nothing":             {func(http.ResponseWriter, *http.Request) {}, "-", "-"},
	} {
		for path, want := range map[string]string{upload: c.stream, common: c.short} {
			synctest.Test(t, func(t *testing.T) {
				w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
				var body io.ReadCloser
				withInfo(limitBodyTime(time.Minute, http.HandlerFunc(func(w2 http.ResponseWriter, r *http.Request) {
					time.Sleep(time.Second)
					before := len(w.set)
					c.does(w2, r)
					got := "-"
					if now := w.set[before:]; len(now) > 0 {
						if got = "r"; now[len(now)-1].IsZero() {
							got = "l"
						} else if !now[len(now)-1].Equal(time.Now().Add(time.Minute)) {
							t.Errorf("%s at %s: set to %s", name, path, now[len(now)-1])
						}
					}
					if got != want {
						t.Errorf("%s at %s: %s, want %s", name, path, got, want)
					}
					if got == "l" { // for good
						before = len(w.set)
						_, _ = r.Body.Read(make([]byte, 1))
						_, _ = w2.Write(nil)
						if len(w.set) != before {
							t.Errorf("%s at %s: the lifted deadline was set to %v", name, path, w.set[before:])
						}
					}
					body = r.Body
				}))).ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("body")))
				before := len(w.set)
				_, _ = body.Read(make([]byte, 1)) // a transport may still do so
				_, _ = io.Copy(io.Discard, body)
				if len(w.set) != before {
					t.Errorf("%s at %s: after the handler has returned, the deadline was set to %v", name, path, w.set[before:])
				}
			})
		}
	}
}

// Without a deadline, a slow client could hold memory for ever, so no such request is served.
func TestNoBodyIsReadWithoutADeadline(t *testing.T) {
	w := httptest.NewRecorder() // it has no deadlines
	limitBodyTime(time.Minute, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was served") })).
		ServeHTTP(w, httptest.NewRequest(http.MethodPost, common, strings.NewReader("body")))
	if w.Code != http.StatusInternalServerError || w.Header().Get("Cache-Control") != cacheControl {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// What a handler does with a paced answer decides whether its end gets a deadline, for the bytes
// that net/http still sends. Each write has the same time, however much was written before.
func TestWhichAnswersHaveADeadlineAtTheirEnd(t *testing.T) {
	const within = 30 * time.Second
	for name, c := range map[string]struct {
		does   func(http.ResponseWriter) error
		major  int
		writes int
		set    int // deadlines; by HTTP/1.1 the first one is that of the request before
	}{
		"nothing":            {func(http.ResponseWriter) error { return nil }, 1, 0, 1},
		"nothing, by HTTP/2": {func(http.ResponseWriter) error { return nil }, 2, 0, 0},
		"a write":            {func(w http.ResponseWriter) error { _, err := w.Write([]byte("x")); return err }, 1, 1, 2},
		"a write, by HTTP/2": {func(w http.ResponseWriter) error { _, err := w.Write([]byte("x")); return err }, 2, 1, 1},
		"a full part":        {func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, writePart)); return err }, 2, 1, 1},
		"a part and a byte":  {func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, writePart+1)); return err }, 2, 2, 1},
		"three parts":        {func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, 3*writePart)); return err }, 2, 3, 1},
		"a flush":            {func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }, 2, 0, 1},
		"it is taken over":   {func(w http.ResponseWriter) error { _, _, err := http.NewResponseController(w).Hijack(); return err }, 1, 0, 1},
		"written, then taken over": {func(w http.ResponseWriter) error {
			_, _ = w.Write(nil)
			_, _, err := http.NewResponseController(w).Hijack()
			return err
		}, 1, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			below := &paced{slowWriter: slowWriter{ResponseRecorder: httptest.NewRecorder()}}
			r := httptest.NewRequest(http.MethodGet, common, nil)
			r.ProtoMajor = c.major
			limitWriteTime(within, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if err := c.does(w); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})).ServeHTTP(below, r)
			time.Sleep(2 * within) // no timer of a write that has ended rings
			if below.writes != c.writes || len(below.set) != c.set {
				t.Errorf("%s: %d writes, deadlines %v; want %d and %d", name, below.writes, below.set, c.writes, c.set)
			}
			if c.major == 1 && !below.set[0].IsZero() {
				t.Errorf("%s: the first deadline is %s, want none", name, below.set[0])
			}
		})
	}
	// A write that fails is the last.
	failing := &paced{slowWriter: slowWriter{ResponseRecorder: httptest.NewRecorder()}, fails: 2}
	var n int
	var err error
	limitWriteTime(within, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { n, err = w.Write(make([]byte, 5*writePart)) })).
		ServeHTTP(failing, httptest.NewRequest(http.MethodGet, common, nil))
	if n != writePart || err == nil || failing.writes != 2 {
		t.Errorf("%d bytes, %v, %d writes", n, err, failing.writes)
	}
}

// paced counts writes, and lets a handler take the connection over.
type paced struct {
	slowWriter
	writes, fails int // the number of the write that fails; 0: none
}

func (p *paced) Hijack() (net.Conn, *bufio.ReadWriter, error) { return &net.TCPConn{}, nil, nil }

func (p *paced) Write(b []byte) (int, error) {
	p.writes++
	if p.writes == p.fails {
		return 0, errors.New("the connection is gone")
	}
	return p.slowWriter.Write(b)
}
