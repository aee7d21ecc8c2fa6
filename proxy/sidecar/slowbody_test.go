package sidecar

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// deadlines is a ResponseWriter that notes the read deadlines it is given.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

func TestBodiesAreBoundedUntilTheyAreThere(t *testing.T) {
	for name, c := range map[string]struct {
		body    io.Reader
		upgrade string
		want    int // deadlines
	}{
		"none":       {body: nil, want: 0},
		"a body":     {body: strings.NewReader("body"), want: 2},
		"an upgrade": {body: strings.NewReader("body"), upgrade: "websocket", want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", c.body)
			r.Header.Set("Upgrade", c.upgrade)
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			boundBodies(time.Minute, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil {
					t.Error(err)
				}
			})).ServeHTTP(w, r)
			if len(w.set) != c.want {
				t.Fatalf("deadlines %v, want %d", w.set, c.want)
			}
			if c.want == 2 && (w.set[0].IsZero() || !w.set[1].IsZero()) {
				t.Errorf("deadlines %v, want one, and that it is lifted", w.set)
			}
		})
	}
}

func TestABodyThatNeverComesIsGivenUp(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		ended := make(chan error, 1)
		s := httptest.NewUnstartedServer(boundBodies(10*time.Millisecond, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
