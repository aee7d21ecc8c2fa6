package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/skewproof/skewproof/proxy/internal/replay"
)

// front makes the handler a TLS server for clients.
func front(t *testing.T, s *shell, http2 bool) (*httptest.Server, *http.Client) {
	t.Helper()
	server := peerServer(t, http2, s)
	client := server.Client()
	client.Transport.(*http.Transport).DisableCompression = true
	return server, client
}

// through puts the handler in front of a peer, over real connections. Both sides use HTTP/1.1, or
// both use HTTP/2.
func through(t *testing.T, http2 bool, peer http.Handler) (url string, client *http.Client, s *shell) {
	t.Helper()
	far := peerServer(t, http2, peer)
	s = newShell(t, Reference(), capablePeers(map[ServerID]string{"a": address(far)}, "a"), transportTo(t, far, http2))
	near, client := front(t, s, http2)
	return near.URL, client, s
}

// onBoth runs a test over HTTP/1.1 and over HTTP/2.
func onBoth(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Run("HTTP/1.1", func(t *testing.T) { test(t, false) })
	t.Run("HTTP/2", func(t *testing.T) { test(t, true) })
}

func TestForwardPreservesRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, http2 bool) {
		type arrived struct {
			Method, Target, Body, ContentType, Accept, Audit string
			Length                                           int64
			Proto                                            int
		}
		var got arrived
		url, client, _ := through(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got = arrived{r.Method, r.RequestURI, string(body), r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Header.Get("Audit-Id"), r.ContentLength, r.ProtoMajor}
			w.WriteHeader(202)
		}))
		proto := 1
		if http2 {
			proto = 2
		}
		for name, c := range map[string]struct {
			method, target, body, contentType, accept string
		}{
			"query bytes":          {"GET", gadgetsPath + "?b=2&a=1&fieldSelector=metadata.name%3Dx,a!=b&empty&a=%zz;x", "", "", ""},
			"no query but a mark":  {"GET", gadgetsPath + "?", "", "", ""},
			"escaped path":         {"GET", gadgetsPath + "/a%20b%3Ac", "", "", ""},
			"dry run":              {"POST", gadgetsPath + "?dryRun=All&fieldManager=x", `{"kind":"Gadget"}`, "application/json", ""},
			"JSON patch":           {"PATCH", gadgetsPath + "/x", `[]`, "application/json-patch+json", ""},
			"merge patch":          {"PATCH", gadgetsPath + "/x", `{}`, "application/merge-patch+json", ""},
			"strategic patch":      {"PATCH", gadgetsPath + "/x", `{}`, "application/strategic-merge-patch+json", ""},
			"server-side apply":    {"PATCH", gadgetsPath + "/x?force=true", `a: b`, "application/apply-patch+yaml", ""},
			"protobuf":             {"PUT", gadgetsPath + "/x", "k8s\x00\x0a\xff\x00", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"},
			"delete with options":  {"DELETE", gadgetsPath + "/x", `{"propagationPolicy":"Foreground"}`, "application/json", ""},
			"table":                {"GET", gadgetsPath, "", "", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
			"head":                 {"HEAD", gadgetsPath, "", "", ""},
			"longer than is kept":  {"POST", gadgetsPath, strings.Repeat("0123456789", replay.Bound/4), "application/json", ""},
			"a trailing slash":     {"GET", gadgetsPath + "/", "", "", ""},
			"an empty body is one": {"POST", gadgetsPath, "", "application/json", ""},
		} {
			t.Run(name, func(t *testing.T) {
				r, err := http.NewRequest(c.method, url+c.target, strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set(auditinternal.HeaderAuditID, "id-"+name)
				for header, value := range map[string]string{"Content-Type": c.contentType, "Accept": c.accept} {
					if value != "" {
						r.Header.Set(header, value)
					}
				}
				answer, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != 202 {
					t.Errorf("status %d, want the peer's 202", answer.StatusCode)
				}
				want := arrived{c.method, c.target, c.body, c.contentType, c.accept, "id-" + name, int64(len(c.body)), proto}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("arrived (-want +got):\n%s", diff)
				}
			})
		}
	})
}

func TestUpstreamEncodesQuery(t *testing.T) {
	var sent string
	s := newShell(t, Upstream137(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		sent = r.URL.RequestURI()
		return says(200, ""), nil
	}))
	s.ask("GET", gadgetsPath+"/a%3Ab?b=2&a=%7E&a=1", "")
	if want := gadgetsPath + "/a:b?a=~&a=1&b=2"; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
}

func TestBodyWithoutLength(t *testing.T) {
	onBoth(t, func(t *testing.T, http2 bool) {
		url, client, _ := through(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(w, r.Body)
		}))
		reader, writer := io.Pipe()
		go func() {
			for i := range 100 {
				fmt.Fprintf(writer, "%d ", i)
			}
			writer.Close()
		}()
		answer, err := client.Post(url+gadgetsPath, "application/json", reader)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || !strings.HasPrefix(string(body), "0 1 2") || !strings.HasSuffix(string(body), "98 99 ") {
			t.Errorf("returned as %q, %v", body, err)
		}
	})
}

func TestForwardPreservesAnswer(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	io.WriteString(z, strings.Repeat("a large list ", 10000))
	z.Close()
	onBoth(t, func(t *testing.T, http2 bool) {
		url, client, _ := through(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Type", "application/vnd.kubernetes.protobuf")
			h.Set("Audit-Id", r.Header.Get("Audit-Id"))
			h.Add("Warning", `299 - "one"`)
			h.Add("Warning", `299 - "two"`)
			h.Set("Connection", "X-Between-Neighbours")
			h.Set("X-Between-Neighbours", "only")
			h.Set("Keep-Alive", "timeout=5")
			h.Set(HopHeader, "true")
			h.Set("x-kubernetes-apiserver-rerouted", "true")
			h.Set("Trailer", "X-Checksum, "+RefusedHeader)
			if r.Header.Get("Accept-Encoding") == "gzip" {
				h.Set("Content-Encoding", "gzip")
				w.Write(compressed.Bytes())
			} else {
				io.WriteString(w, r.Header.Get("Accept-Encoding"))
			}
			h.Set("X-Checksum", "42")
			h.Set(HopHeader, "true")
			h.Set(http.TrailerPrefix+"X-Late", "unannounced")
		}))
		for _, encoding := range []string{"gzip", ""} {
			r, _ := http.NewRequest("GET", url+gadgetsPath, nil)
			r.Header.Set("Audit-Id", "the-id")
			if encoding != "" {
				r.Header.Set("Accept-Encoding", encoding)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string][]byte{"gzip": compressed.Bytes(), "": []byte("identity")}[encoding]; !bytes.Equal(body, want) {
				t.Errorf("Accept-Encoding %q: %d bytes, want the peer's own %d", encoding, len(body), len(want))
			}
			if got := answer.Header.Get("Content-Encoding"); got != encoding {
				t.Errorf("Content-Encoding %q, want %q", got, encoding)
			}
			if diff := cmp.Diff([]string{`299 - "one"`, `299 - "two"`}, answer.Header["Warning"]); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if got := answer.Header["Audit-Id"]; !cmp.Equal(got, []string{"the-id"}) {
				t.Errorf("Audit-Id %q, want it once", got)
			}
			if said := mentionsHop(answer.Header, answer.Trailer); said != "" {
				t.Errorf("the client sees %s", said)
			}
			if !http2 && answer.Header.Get("X-Between-Neighbours") != "" || answer.Header.Get("Keep-Alive") != "" { // HTTP/2 has no Connection header
				t.Errorf("hop-by-hop headers were passed on: %v", answer.Header)
			}
			if diff := cmp.Diff(http.Header{"X-Checksum": {"42"}, "X-Late": {"unannounced"}}, answer.Trailer); diff != "" {
				t.Errorf("trailers (-want +got):\n%s", diff)
			}
		}
	})
}

func TestForwardAppendsToForwardedFor(t *testing.T) {
	var sent http.Header
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		sent = r.Header
		if r.Host != "" || r.URL.Host != "a.test:6443" {
			t.Errorf("Host %q, URL host %q: want the peer's address, not that of the client's request", r.Host, r.URL.Host)
		}
		return says(200, ""), nil
	}))
	r := httptest.NewRequest("GET", "http://evil.test"+gadgetsPath, nil) // absolute form
	r.Header["X-Forwarded-For"] = []string{"192.0.2.7", "192.0.2.8"}
	r.RemoteAddr = "192.0.2.9:1234"
	s.serve(r)
	if diff := cmp.Diff([]string{"192.0.2.7, 192.0.2.8, 192.0.2.9"}, sent["X-Forwarded-For"]); diff != "" {
		t.Errorf("X-Forwarded-For (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"192.0.2.7", "192.0.2.8"}, r.Header["X-Forwarded-For"]); diff != "" {
		t.Errorf("the caller's own header was changed (-want +got):\n%s", diff)
	}
}

func TestExpectContinue(t *testing.T) {
	for _, accepts := range []bool{true, false} {
		url, client, _ := through(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if accepts {
				io.Copy(w, r.Body)
			} else {
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		client.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
		var asked, continued atomic.Bool // set by goroutines of the transport
		content := strings.NewReader("body")
		body := readerFunc(func(p []byte) (int, error) { asked.Store(true); return content.Read(p) })
		ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got100Continue: func() { continued.Store(true) }})
		r, _ := http.NewRequestWithContext(ctx, "POST", url+gadgetsPath, body)
		r.ContentLength = 4
		r.Header.Set("Expect", "100-continue")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if continued.Load() != accepts || asked.Load() != accepts {
			t.Errorf("peer wants the body: %v; the client got 100 (Continue): %v, and sent: %v", accepts, continued.Load(), asked.Load())
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestForwardInformationalAnswers(t *testing.T) {
	url, client, _ := through(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</x>")
		w.Header().Set(HopHeader, "true")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		io.WriteString(w, "done")
	}))
	hints := http.Header{}
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		if code == http.StatusEarlyHints {
			hints = http.Header(h)
		}
		return nil
	}})
	r, _ := http.NewRequestWithContext(ctx, "GET", url+gadgetsPath, nil)
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if hints.Get("Link") != "</x>" || mentionsHop(hints) != "" {
		t.Errorf("early hints %v, want the peer's Link and nothing of the hop", hints)
	}
	if answer.Header.Get("Link") != "" {
		t.Error("the hint is in the answer itself as well")
	}
}

func TestWatch(t *testing.T) {
	onBoth(t, func(t *testing.T, http2 bool) {
		events := make(chan string)
		gone := make(chan struct{})
		url, client, _ := through(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json;stream=watch")
			http.NewResponseController(w).Flush()
			for {
				select {
				case e := <-events:
					io.WriteString(w, e+"\n")
					http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					close(gone)
					return
				}
			}
		}))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "GET", url+gadgetsPath+"?watch=true", nil)
		answer, err := client.Do(r) // returns before any event, because the headers were flushed
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		lines := bufio.NewReader(answer.Body)
		for _, e := range []string{"ADDED", "MODIFIED", "DELETED"} {
			events <- e // the next event is sent only after this one has arrived
			if got, err := lines.ReadString('\n'); err != nil || got != e+"\n" {
				t.Fatalf("read %q, %v, want %s", got, err, e)
			}
		}
		cancel()
		<-gone // the peer's handler has ended because the client left
	})
}

func TestPeerDiesDuringAnswer(t *testing.T) {
	onBoth(t, func(t *testing.T, http2 bool) {
		for name, path := range map[string]string{"watch": "?watch=true", "list": ""} {
			t.Run(name, func(t *testing.T) {
				die := make(chan struct{})
				url, client, _ := through(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.WriteString(w, "half of it\n")
					http.NewResponseController(w).Flush()
					<-die
					panic(http.ErrAbortHandler)
				}))
				answer, err := client.Get(url + gadgetsPath + path)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				lines := bufio.NewReader(answer.Body)
				if got, err := lines.ReadString('\n'); err != nil || got != "half of it\n" {
					t.Fatalf("read %q, %v", got, err)
				}
				close(die)
				if rest, err := io.ReadAll(lines); err == nil {
					t.Errorf("the answer ended with %q as though it were complete", rest)
				}
			})
		}
	})
}

func TestCertificatesOfPeersAreVerified(t *testing.T) {
	far := peerServer(t, false, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the peer was asked") }))
	strict := &http.Transport{TLSClientConfig: &tls.Config{ServerName: "example.com"}} // trusts the system's authorities only
	t.Cleanup(strict.CloseIdleConnections)
	s := newShell(t, Reference(), capablePeers(map[ServerID]string{"a": address(far)}, "a"), strict)
	far.Config.ErrorLog = nil
	got := s.ask("POST", gadgetsPath, "x")
	if got.Code != 503 || !strings.Contains(got.Body.String(), "its certificate was not accepted") {
		t.Errorf("%d %s, want a 503 with the reason", got.Code, got.Body)
	}
	if diff := cmp.Diff([]string{"a not-delivered"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// net/http can read statuses that it cannot write.
func TestInvalidStatusesOfPeersAre503(t *testing.T) {
	for status, want := range map[int]int{7: 503, 199: 503, 200: 200, 599: 599, 999: 999, 1000: 503, 20000: 503} {
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) { return says(status, ""), nil }))
		if got := s.ask("GET", gadgetsPath, ""); got.Code != want {
			t.Errorf("the peer answers %d: the client got %d, want %d", status, got.Code, want)
		}
	}
}
