package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// kubePath is where the release server has the kube-apiserver of the test version.
var kubePath = "/" + testVersion + "/bin/linux/" + runtime.GOARCH + "/kube-apiserver"

func sha(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// kubeRelease serves one file and its checksum.
func kubeRelease(t *testing.T, file http.HandlerFunc, checksum string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case kubePath:
			file(w, r)
		case kubePath + ".sha256":
			writeAll(t, w, []byte(checksum))
		default:
			http.NotFound(w, r)
		}
	})
}

func needLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("releases are downloaded for linux only")
	}
}

func TestDownloadKubeAPIServer(t *testing.T) {
	needLinux(t)
	good := script(KubeAPIServer, testVersion)
	for name, checksum := range map[string]string{
		"only the sum":         sha(good),
		"with a newline":       sha(good) + "\n",
		"upper case":           strings.ToUpper(sha(good)),
		"as sha256sum does it": sha(good) + "  kube-apiserver\n",
		"binary mode":          sha(good) + " *kube-apiserver\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, kubeRelease(t, func(w http.ResponseWriter, _ *http.Request) { writeAll(t, w, good) }, checksum))
			b, err := s.Get(t.Context(), KubeAPIServer, testVersion)
			if err != nil {
				t.Fatal(err)
			}
			if b.Origin != OriginDownload || b.SHA256 != sha(good) || b.Size != int64(len(good)) || !strings.Contains(b.How, kubePath) {
				t.Errorf("got %+v", b)
			}
			if got, err := os.ReadFile(b.Path); err != nil || string(got) != string(good) {
				t.Errorf("got the file %q, %v", got, err)
			}
			again, err := s.Get(t.Context(), KubeAPIServer, testVersion)
			b.Origin = OriginCache
			if err != nil || again != b {
				t.Errorf("the second time: got %+v, %v\nwant %+v", again, err, b)
			}
		})
	}
}

// badDownloads are the ways in which a download ends badly.
func badDownloads(t *testing.T) []badDownload {
	good := script(KubeAPIServer, testVersion)
	ok := func(w http.ResponseWriter, _ *http.Request) { writeAll(t, w, good) }
	other := script(KubeAPIServer, "v1.36.4")
	return []badDownload{
		{"wrong checksum", kubeRelease(t, ok, sha([]byte("something else"))), "WRONG CHECKSUM", errChecksum},
		{"checksum is a page", kubeRelease(t, ok, "<html>\n"), "is not a SHA-256", nil},
		{"checksum is of another file", kubeRelease(t, ok, sha(good)+"  kubelet\n"), "no checksum for kube-apiserver", nil},
		{"404", serve(t, http.NotFound), "404 Not Found", errNoRelease},
		{"404 for the file only", kubeRelease(t, http.NotFound, sha(good)), "404 Not Found", errNoRelease},
		{"503", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }), "503 Service Unavailable", nil},
		{"cut in the middle", kubeRelease(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			writeAll(t, w, good[:len(good)/2])
		}, sha(good)), "unexpected EOF", nil},
		{"stalls in the middle", kubeRelease(t, func(w http.ResponseWriter, r *http.Request) {
			writeAll(t, w, good[:len(good)/2])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, sha(good)), "no data arrived for", nil},
		{"the checksum stalls", serve(t, func(w http.ResponseWriter, r *http.Request) {
			writeAll(t, w, []byte(sha(good)[:10]))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}), "it did not come within", nil},
		{"slow header", serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "timeout awaiting response headers", nil},
		{"unreachable host", unreachable(t), "connection refused", nil},
		{"the file is of another version", kubeRelease(t, func(w http.ResponseWriter, _ *http.Request) { writeAll(t, w, other) }, sha(other)),
			`says "Kubernetes v1.36.4", not v1.36.3`, nil},
		{"redirected in a circle", serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }),
			"redirected ten times", nil},
	}
}

type badDownload struct {
	name string
	url  string
	want string
	is   error
}

// impatient makes slowness quick to be seen. Only the slow cases may fail of it, and those do not
// end otherwise.
func impatient(s *Store, tc badDownload) {
	switch tc.name {
	case "slow header":
		s.limits.headers = 50 * time.Millisecond
	case "the checksum stalls":
		s.limits.checksum = 50 * time.Millisecond
	case "stalls in the middle":
		s.limits.stall = 50 * time.Millisecond
	}
}

func TestDownloadFails(t *testing.T) {
	needLinux(t)
	for _, tc := range badDownloads(t) {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t, tc.url)
			impatient(s, tc)
			_, err := s.Get(t.Context(), KubeAPIServer, testVersion)
			var failed *UnavailableError
			if !errors.As(err, &failed) || !errors.Is(err, ErrUnavailable) || len(failed.Attempts) != 2 {
				t.Fatalf("got %v, want two failed attempts", err)
			}
			download := failed.Attempts[0]
			if download.Origin != OriginDownload || !strings.Contains(download.Err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %q, want it to say %q", download.Err, tc.want)
			}
			if text := progressOf(s).String(); !strings.Contains(text, tc.want) {
				t.Errorf("nobody was told:\n%s", text)
			}
			checkNothingLeft(t, s.Dir)
		})
	}
}

func TestDownloadRefusesDowngrade(t *testing.T) {
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { writeAll(t, w, []byte("x")) })
	secure := newSecureServer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain, http.StatusFound) })
	client := newClient(headerTimeout)
	client.Transport = secure.Client().Transport
	if _, err := get(t.Context(), client, secure.URL); err == nil || !strings.Contains(err.Error(), "redirected from https to http") {
		t.Errorf("got %v", err)
	}
}

// An interrupted download ends at once, and does not make Get build the binary.
func TestDownloadCancelled(t *testing.T) {
	needLinux(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(interrupted)
		<-r.Context().Done()
	})
	s := newStore(t, url)
	_, err := s.Get(ctx, KubeAPIServer, testVersion)
	if !errors.Is(err, interrupted) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	checkNothingLeft(t, s.Dir)
}

// A long download reports that it is still running, and how much has arrived.
func TestDownloadProgress(t *testing.T) {
	needLinux(t)
	good := script(KubeAPIServer, testVersion)
	text := &lines{}
	s := newStore(t, kubeRelease(t, func(w http.ResponseWriter, r *http.Request) {
		writeAll(t, w, good[:1])
		w.(http.Flusher).Flush()
		select {
		case <-text.has("still downloading "):
		case <-r.Context().Done():
		}
		writeAll(t, w, good[1:])
	}, sha(good)))
	s.Progress, s.limits.progress = text, time.Millisecond
	if _, err := s.Get(t.Context(), KubeAPIServer, testVersion); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kube-apiserver v1.36.3: downloading http://", "so far, 0.0 MB", "ready, 0.0 MB, downloaded from"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// A wrong request is an error before Get connects to any server.
func TestGetWrongUsage(t *testing.T) {
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	s := newStore(t, url)
	if _, err := s.Get(t.Context(), KubeAPIServer, "v1.37"); !errors.Is(err, ErrBadVersion) || errors.Is(err, ErrUnavailable) {
		t.Errorf("version: got %v", err)
	}
	if _, err := s.Get(t.Context(), "cloud-controller-manager", "v1.37.1"); !errors.Is(err, ErrBadRef) {
		t.Errorf("component: got %v", err)
	}
	checkNothingLeft(t, s.Dir)
}
