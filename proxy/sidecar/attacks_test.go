package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A client may flood a connection with frames that the server must answer or store. It must lose
// this connection, and other clients must not notice the flood. Settings frames need neither:
// several have one acknowledgement.
func TestFloodsOfFrames(t *testing.T) {
	const most, ofSettings = 2_000_000, 50_000 // frames: if the server accepts so many, it tolerates the flood
	a, r := one(t)
	behindKubeFilters(t, a, nil)
	alice := r.user("alice")
	for name, flood := range map[string]func(*http2.Framer) error{
		"settings": func(f *http2.Framer) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		},
		"pings": func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) },
		"headers that never end": func() func(*http2.Framer) error {
			begun := false
			return func(f *http2.Framer) error {
				var block headerBlock
				if !begun {
					begun = true
					return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.of(":method", "GET", ":scheme", "https", ":authority", "x", ":path", common)})
				}
				return f.WriteContinuation(1, false, block.of("x-a", fmt.Sprint(make([]byte, 1000))))
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			conn := r.dial(r.front)
			defer conn.Close()
			err := conn.SetDeadline(time.Now().Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			framer := http2.NewFramer(conn, conn) // it reads nothing, so the answers pile up
			if err := framer.WriteSettings(); err != nil {
				t.Fatal(err)
			}
			n := 0
			for ; n < most && err == nil && (name != "settings" || n < ofSettings); n++ {
				if err = flood(framer); n == 5000 {
					if got := r.get(alice, common); got.code != http.StatusOK {
						t.Errorf("another client gets %d %s meanwhile", got.code, got.body)
					}
				}
			}
			var late interface{ Timeout() bool }
			if err == nil && name != "settings" || errors.As(err, &late) && late.Timeout() {
				t.Errorf("after %d frames, the connection continues: %v", n, err)
			}
			if got := r.get(alice, common); got.code != http.StatusOK {
				t.Errorf("another client gets %d %s afterwards", got.code, got.body)
			}
		})
	}
}

// One caller abandons many requests at once (CVE-2023-44487). This must not cost another caller a
// request, although the sidecar also abandons the requests at the other server. That server ends a
// connection with more than 400 requests whose handlers have not begun (net/http, scheduleHandler).
func TestAbandonedRequestsCostNobodyElse(t *testing.T) {
	for where, path := range map[string]string{"local": common, "peer": "/apis/new.example/v2/novelties"} {
		t.Run(where, func(t *testing.T) {
			p := newPair(t)
			released := make(chan struct{})
			var arrived atomic.Int64
			for _, a := range []*apiserver{p.a, p.b} {
				behindKubeFilters(t, a, func(k *kubeAPIServer) {
					k.answer = func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Query().Has("slow") {
							arrived.Add(1)
							<-released // the handler does not notice that its client has closed the connection
							return
						}
						k.write(w, "application/json", map[string]any{})
					}
				})
			}
			bob := p.user("bob")
			var failed, asked atomic.Int64
			stop := make(chan struct{})
			ended := flood(2, stop, func() {
				r, _ := http.NewRequest(http.MethodGet, "https://"+p.atA.front+path, nil)
				asked.Add(1)
				answer, err := bob.Do(r)
				if err != nil {
					failed.Add(1)
					return
				}
				if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusTooManyRequests {
					failed.Add(1)
				}
				answer.Body.Close()
			})
			mallory := p.user("mallory")
			var abandoning sync.WaitGroup
			for range 16 {
				abandoning.Go(func() {
					for i := 0; i < 100 || arrived.Load() < 100 && i < 1000; i++ {
						ctx, cancel := context.WithCancel(t.Context())
						ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
							time.AfterFunc(5*time.Millisecond, cancel) // about when the other server gets the request
						}})
						r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.atA.front+path+"?slow", nil)
						if answer, err := mallory.Do(r); err == nil {
							answer.Body.Close()
						}
						cancel()
					}
				})
			}
			abandoning.Wait()
			close(released)
			close(stop)
			ended()
			if n := failed.Load(); n > 0 {
				t.Errorf("%d of %d requests of another caller failed", n, asked.Load())
			}
			if arrived.Load() < 100 || asked.Load() == 0 {
				t.Errorf("%d abandoned requests arrived, and %d others were sent: this proves nothing", arrived.Load(), asked.Load())
			}
		})
	}
}

// A client gets 100 Continue only if it waits for it. Other informational answers pass.
func TestInformationalAnswers(t *testing.T) {
	a, r := one(t)
	behindKubeFilters(t, a, func(k *kubeAPIServer) {
		k.answer = func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Link", "</x>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		}
	})
	for _, http2 := range []bool{false, true} {
		for _, expects := range []bool{false, true} {
			cert := r.ca.issue(subject{name: "alice"})
			client := r.client(&cert, http2)
			client.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
			var codes []int
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
				codes = append(codes, code)
				return nil
			}})
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.front+common, io.LimitReader(zeros{}, 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			if expects {
				request.Header.Set("Expect", "100-continue")
			}
			if got := do(t, client, request); got.code != http.StatusOK {
				t.Errorf("%d %s", got.code, got.body)
			}
			want := "[103]"
			if expects {
				want = "[100 103]"
			}
			if got := fmt.Sprint(codes); got != want {
				t.Errorf("HTTP/2 %t, expects %t: informational answers %s, want %s", http2, expects, got, want)
			}
		}
	}
}

// Certificates change on disk while callers write. New connections use the new certificates.
// Requests on old connections end there.
func TestCertificatesRotateUnderLoad(t *testing.T) {
	p := newPair(t)
	served := behindKubeFilters(t, p.b, nil)
	behindKubeFilters(t, p.a, nil)
	alice := p.user("alice")
	var failed, sent atomic.Int64
	stop := make(chan struct{})
	ended := flood(4, stop, func() {
		n := sent.Add(1)
		if code, err := p.atA.write(alice, "/apis/new.example/v2/novelties", fmt.Sprint(n), make([]byte, 1<<(n%19))); err != nil || code != http.StatusOK {
			failed.Add(1)
			t.Logf("write %d: %d, %v", n, code, err)
		}
	})
	for range 3 * keepRetired {
		for _, name := range []string{"a", "b"} {
			p.frontCA.issue(subject{name: "front-proxy-client"}).write(t, p.dir, "front-proxy-client-"+name)
			p.ca.issue(subject{name: "kube-apiserver", dns: []string{peerServerName, "localhost"}}).write(t, p.dir, "serving-"+name)
		}
		before := sent.Load()
		await(t, "more writes have been sent", func() bool { return sent.Load() > before+8 })
	}
	close(stop)
	ended()
	if n, twice := served.written(); failed.Load() > 0 || int64(n) != sent.Load() || len(twice) > 0 {
		t.Errorf("of %d writes %d failed, %d were carried out, and %v repeatedly", sent.Load(), failed.Load(), n, twice)
	}
}
