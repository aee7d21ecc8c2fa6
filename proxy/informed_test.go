package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"testing"
	"testing/synctest"
)

// stuck is the writer of a client that does not read.
type stuck struct {
	*httptest.ResponseRecorder
	reads chan struct{} // closed when the client reads
	codes []int
}

func (s *stuck) WriteHeader(code int) {
	<-s.reads
	s.codes = append(s.codes, code)
}

// The transport calls the hook while it reads a connection that all callers share. A client that
// does not read must not block it. The client gets what has room, in order, and then the answer.
func TestInformationalAnswersBlockNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &stuck{ResponseRecorder: httptest.NewRecorder(), reads: make(chan struct{})}
		trace := &attemptTrace{w: client}
		hook := trace.hooks().Got1xxResponse
		for range 1000 {
			if err := hook(http.StatusEarlyHints, textproto.MIMEHeader{"Link": {"</x>"}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		over := make(chan struct{})
		go func() { trace.end(); close(over) }()
		synctest.Wait()
		select {
		case <-over:
			t.Fatal("the handler may use the writer, which is still in use")
		default:
		}
		if err := hook(http.StatusEarlyHints, nil); err != nil { // after the end, it passes nothing on
			t.Fatal(err)
		}
		close(client.reads)
		<-over
		trace.end() // again, as when the attempt returns
		client.WriteHeader(http.StatusOK)
		if n := len(client.codes); n < mostWaiting+1 || n > mostWaiting+2 || client.codes[n-1] != http.StatusOK || client.codes[0] != http.StatusEarlyHints {
			t.Errorf("the client got %v, want at most %d informational answers before 200", client.codes, mostWaiting+1)
		}
		if len(client.Header()) != 0 {
			t.Errorf("headers of informational answers are left: %v", client.Header())
		}
	})
}

// 100 is the server's own, and HTTP/2 has no 101.
func TestInformationalAnswersThatAreNotPassedOn(t *testing.T) {
	client := &stuck{ResponseRecorder: httptest.NewRecorder(), reads: make(chan struct{})}
	close(client.reads)
	trace := &attemptTrace{w: client}
	hook := trace.hooks().Got1xxResponse
	for _, code := range []int{http.StatusContinue, http.StatusSwitchingProtocols, http.StatusEarlyHints, http.StatusProcessing} {
		if err := hook(code, nil); err != nil {
			t.Fatal(err)
		}
	}
	trace.end()
	if want := []int{http.StatusEarlyHints, http.StatusProcessing}; len(client.codes) != 2 || client.codes[0] != want[0] || client.codes[1] != want[1] {
		t.Errorf("passed on: %v, want %v", client.codes, want)
	}
}
