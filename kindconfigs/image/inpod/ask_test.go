package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asks runs "inpod ask" against a server, until each path was asked for twice.
func asks(t *testing.T, server http.HandlerFunc, paths ...string) (all []answer) {
	t.Helper()
	s := httptest.NewServer(server)
	defer s.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `{clusters: [{name: c, cluster: {server: '%s'}}], contexts: [{name: c, context: {cluster: c}}],
current-context: c}`, s.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAfter{lines: 2 * len(paths), stop: stop}
	if code, err := run(ctx, append([]string{"ask"}, paths...), strings.NewReader(""), out); code != 0 || err != nil {
		t.Fatalf("code %d, error %v", code, err)
	}
	for lines := json.NewDecoder(&out.Buffer); lines.More(); {
		var a answer
		if err := lines.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if a.At.IsZero() {
			t.Errorf("%+v has no time", a)
		}
		all = append(all, a)
	}
	return all
}

// stopAfter calls stop after so many lines.
type stopAfter struct {
	bytes.Buffer
	lines int
	stop  func()
}

func (s *stopAfter) Write(line []byte) (int, error) {
	if s.lines--; s.lines == 0 {
		s.stop()
	}
	return s.Buffer.Write(line)
}

func TestAnswersAreTold(t *testing.T) {
	var refusals, closed atomic.Int32
	got := asks(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Close {
			closed.Add(1)
		}
		switch r.URL.Path {
		case "/ok":
		case "/retried":
			if refusals.Add(1) == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case "/unavailable":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	}, "/ok", "/absent", "/retried", "/unavailable")
	type told struct {
		Path   string
		Status int
		Failed bool
	}
	var all []told
	for _, a := range got {
		all = append(all, told{a.Path, a.Status, a.Error != ""})
	}
	var want []told
	for _, a := range []told{{"/ok", 200, false}, {"/absent", 404, true}, {"/retried", 200, false}, {"/unavailable", 503, true}} {
		want = append(want, a, a)
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if n := closed.Load(); int(n) != len(want)/2 {
		t.Errorf("%d of %d requests closed their connection, want half of them", n, len(want))
	}
}

// An error that no restart of a server explains must not pass for a lost connection.
func TestLostConnections(t *testing.T) {
	refused := &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
	for _, tc := range []struct {
		err  error
		lost bool
	}{
		{refused, true},
		{&url.Error{Op: "Get", Err: io.ErrUnexpectedEOF}, true},
		{&url.Error{Op: "Get", Err: context.DeadlineExceeded}, true},
		{errors.New("http2: client connection lost"), true},
		{errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority"), false},
	} {
		if status, lost := failure(tc.err); status != 0 || lost != tc.lost {
			t.Errorf("%v: status %d, lost %v; want 0, %v", tc.err, status, lost, tc.lost)
		}
	}
}

func TestAskWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	code, err := run(t.Context(), []string{"ask", "/"}, strings.NewReader(""), &bytes.Buffer{})
	if code != exitFailed || err == nil || !strings.Contains(err.Error(), "$KUBECONFIG") {
		t.Errorf("code %d, error %v", code, err)
	}
}
