package sidecar

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A buffered answer may have maxBuffered bytes, and not one more, however they come.
func TestBufferedAnswersAreBounded(t *testing.T) {
	for _, part := range []int{1 << 10, maxBuffered} {
		answer := &bufferedAnswer{header: http.Header{}}
		for n := 0; n < maxBuffered; n += part {
			if _, err := answer.Write(make([]byte, part)); err != nil {
				t.Fatalf("after %d bytes: %v", n, err)
			}
		}
		if _, err := answer.Write([]byte("x")); err == nil {
			t.Errorf("byte %d is accepted", maxBuffered+1)
		}
		if answer.body.Len() != maxBuffered {
			t.Errorf("%d bytes are kept, want %d", answer.body.Len(), maxBuffered)
		}
	}
}

// When certificates change, the last keepRetired transports are kept, because they may still carry
// requests; the idle connections of all older ones are closed.
func TestRetiredTransportsAreBounded(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 10)) }))
	t.Cleanup(server.Close)
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig
	transport := newTransport(0, 0, func() *tls.Config { return trust.Clone() })
	t.Cleanup(transport.close)
	if n := len(transport.retired); n != 0 {
		t.Errorf("a new transport has retired %d", n)
	}
	var all []*transports
	for n := range 2 * keepRetired {
		all = append(all, transport.current.Load())
		transport.renew()
		kept := min(n+1, keepRetired)
		if len(transport.retired) != kept {
			t.Fatalf("after %d changes, %d are kept, want %d", n+1, len(transport.retired), kept)
		}
		for i, retired := range transport.retired {
			if retired != all[len(all)-kept+i] {
				t.Errorf("after %d changes, the kept ones are not the last %d", n+1, kept)
			}
		}
	}
}
