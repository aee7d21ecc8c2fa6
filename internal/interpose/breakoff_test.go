package interpose

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

// fetchThrough requests a document as a peer, through a transport that keeps its connections. It
// returns the answer, the part of the body that arrived, and the error that ended it.
func (b *bench) fetchThrough(way *http.Transport, path string, header http.Header) (answer *http.Response, body string, broken error) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "https://"+b.Address().String()+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err = (&http.Client{Transport: way, Timeout: patience}).Do(r)
	if err != nil {
		b.t.Fatalf("GET %s: %v, want the headers to come", path, err)
	}
	defer func() { _ = answer.Body.Close() }()
	came, broken := io.ReadAll(answer.Body)
	return answer, string(came), broken
}

func TestAnAnswerBreaksOff(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			way := &http.Transport{TLSClientConfig: b.dialing(b.peer), ForceAttemptHTTP2: http2}
			defer way.CloseIdleConnections()
			for path, announced := range map[string]bool{"/apis": true, "/api": false} { // /api is too long for net/http to set its Content-Length
				healthy, whole, err := b.fetchThrough(way, path, nil)
				if err != nil || len(whole) < 20 || (healthy.ContentLength >= 0) != announced {
					t.Fatalf("%s: %d bytes of %d, %v", path, len(whole), healthy.ContentLength, err)
				}
				for manner, want := range map[fault.DiscoveryFailure]string{fault.BreaksOff: "", fault.CutShort: whole[:len(whole)/2]} {
					b.BreakDiscovery(path, manner)
					for range 2 { // the second request uses the connection of the first, if it is still open
						answer, body, err := b.fetchThrough(way, path, nil)
						switch {
						case answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != healthy.Header.Get("Content-Type"):
							t.Errorf("%s %s: %d with %v, want the server's own headers", path, manner, answer.StatusCode, answer.Header)
						case answer.ContentLength != healthy.ContentLength:
							t.Errorf("%s %s: %d bytes announced, want what the server announced: %d", path, manner, answer.ContentLength, healthy.ContentLength)
						case body != want || err == nil:
							t.Errorf("%s %s: %d bytes came, then %v, want %d and a reset", path, manner, len(body), err, len(want))
						}
					}
					if got := b.RestoreDiscovery(path); got != 2 {
						t.Errorf("%s %s: %d counted, want 2", path, manner, got)
					}
				}
				if _, body, err := b.fetchThrough(way, path, nil); err != nil || body != whole {
					t.Errorf("%s: after the restoration: %d bytes, %v", path, len(body), err)
				}
			}
		})
	}
}

// A 304 has no body that could break off. So a conditional request of a peer is answered like an
// unconditional one.
func TestAnAnswerBreaksOffForWhoHasTheDocument(t *testing.T) {
	b := newBench(t)
	way := &http.Transport{TLSClientConfig: b.dialing(b.peer), ForceAttemptHTTP2: true}
	defer way.CloseIdleConnections()
	tagged := http.Header{"If-None-Match": {tag}}
	if answer, _, err := b.fetchThrough(way, "/apis", tagged); err != nil || answer.StatusCode != http.StatusNotModified {
		t.Fatalf("without a fault: %d, %v, want 304", answer.StatusCode, err)
	}
	b.BreakDiscovery("/apis", fault.BreaksOff)
	if answer, body, err := b.fetchThrough(way, "/apis", tagged); err == nil || answer.StatusCode != http.StatusOK || body != "" {
		t.Errorf("%d, %q, %v, want an answer that breaks off", answer.StatusCode, body, err)
	}
}

// Over HTTP/2, an answer that breaks off ends only itself, and not the connection, which other
// requests share.
func TestOtherAnswersGoOn(t *testing.T) {
	b := newBench(t)
	dialled := 0
	way := &http.Transport{TLSClientConfig: b.dialing(b.peer), ForceAttemptHTTP2: true}
	way.TLSClientConfig.VerifyConnection = func(tls.ConnectionState) error { dialled++; return nil }
	defer way.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+b.Address().String()+"/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := way.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Body.Close() }()
	b.BreakDiscovery("/apis", fault.BreaksOff)
	if _, _, err := b.fetchThrough(way, "/apis", nil); err == nil {
		t.Error("it does not break off")
	}
	close(b.release)
	end := time.AfterFunc(patience, func() { _ = slow.Body.Close() })
	defer end.Stop()
	if body, err := io.ReadAll(slow.Body); err != nil || !strings.HasPrefix(string(body), "first") {
		t.Errorf("the other answer: %q, %v", body, err)
	}
	if dialled != 1 {
		t.Errorf("%d connections were made, want one", dialled)
	}
}
