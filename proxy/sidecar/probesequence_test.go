package sidecar

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// Readiness after each sequence of answers to probes. Misses count in a row: an answer of any kind
// begins the count again. Nobody who listens counts at once.
func TestReadinessAfterSequencesOfProbes(t *testing.T) {
	for sequence, want := range map[string]string{
		// r: ready; u: not ready; b: its answer breaks off; s: slow; x: nobody listens; R: ready, on
		// a new connection; F: ready, on a new connection, and its process cannot be found out.
		// Wanted after each of them: + ready, - not ready.
		"":           "",
		"r":          "+",
		"u":          "-",
		"s":          "-",
		"x":          "-",
		"rsss":       "+++-",
		"rssrssrsss": "+++++++++-",
		"rsssr":      "+++-+",
		"rsssrsss":   "+++-+++-",
		"rbbb":       "+++-",
		"rsbs":       "+++-",
		"rx":         "+-",
		"rxr":        "+-+",
		"rsx":        "++-",
		"rur":        "+-+",
		"russs":      "+----",
		"rsusr":      "++--+",
		"rurss":      "+-+++",
		"rssuRss":    "+++-+++",
		"rF":         "++",
		"rxF":        "+-+",
		"rFsss":      "++++-",
		"rR":         "++",
	} {
		var step rune
		p := &probe{server: "apiserver-a", log: slog.New(slog.DiscardHandler), changed: func() {}, upstream: mustURL(t, "https://127.0.0.1:1")}
		asked := 0
		p.process = func(ctx context.Context) (string, error) {
			asked++
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the question for the process has no time limit")
			}
			if step == 'F' {
				return "", errors.New("busy")
			}
			return "one", nil
		}
		p.client = &http.Client{Transport: fakeTransport(func(r *http.Request) (*http.Response, error) {
			if _, ok := r.Context().Deadline(); !ok {
				t.Error("the probe has no time limit")
			}
			body := io.Reader(strings.NewReader("ok"))
			answer := answers(http.StatusOK, "")
			switch step {
			case 's':
				return nil, context.DeadlineExceeded
			case 'x':
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			case 'u':
				answer = answers(http.StatusInternalServerError, "")
			case 'b':
				body = iotest.ErrReader(io.ErrUnexpectedEOF)
			}
			gotConn(r.Context(), step != 'R' && step != 'F')
			answer.Body, answer.Request = io.NopCloser(body), r
			return answer, nil
		})}
		got, before, pending := "", 0, false
		for _, step = range sequence {
			err := p.once(t.Context())
			got += map[bool]string{true: "+", false: "-"}[p.Ready()]
			if answered := step != 's' && step != 'x' && step != 'b'; strings.ContainsRune("rR", step) != (err == nil) {
				t.Errorf("%q: after %q, answered %t: error %v", sequence, got, answered, err)
			}
			pending = pending || step == 'R' || step == 'F'
			asks := pending && step != 'u' && step != 's' && step != 'x' && step != 'b'
			if asked-before != map[bool]int{true: 1}[asks] {
				t.Errorf("%q, after %q: asked %d times for the process, want %t", sequence, got, asked-before, asks)
			}
			before, pending = asked, pending && (!asks || step == 'F')
		}
		if got != want {
			t.Errorf("%q: %s, want %s", sequence, got, want)
		}
	}
}

// Each state of readiness is logged once, when it begins.
func TestReadinessIsLoggedWhenItChanges(t *testing.T) {
	var logged strings.Builder
	codes := []int{200, 200, 500, 500, 500, 200}
	p := &probe{
		server: "apiserver-a", log: slog.New(slog.NewTextHandler(&logged, nil)), changed: func() {}, upstream: mustURL(t, "https://127.0.0.1:1"),
		process: func(context.Context) (string, error) { return "one", nil },
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p.client = &http.Client{Transport: fakeTransport(func(r *http.Request) (*http.Response, error) {
			if len(codes) == 0 { // the sidecar stops, which is not a state of the server
				cancel()
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			answer := answers(codes[0], "")
			answer.Request, codes = r, codes[1:]
			return answer, nil
		})}
		began := time.Now()
		p.Run(ctx)
		if took := time.Since(began); took != 6*probeEvery {
			t.Errorf("7 probes took %s", took)
		}
	})
	var states []string
	for line := range strings.Lines(logged.String()) {
		_, state, _ := strings.Cut(line, " is=")
		state, _, _ = strings.Cut(state, " incarnation")
		states = append(states, strings.Trim(state, `"`))
	}
	if want := []string{"ready", "not ready", "ready"}; !slices.Equal(states, want) {
		t.Errorf("logged %q, want %q: %s", states, want, &logged)
	}
}
