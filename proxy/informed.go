package proxy

import (
	"maps"
	"net/http"
)

// informational is an informational answer.
type informational struct {
	code   int
	header http.Header
}

// mostWaiting is how many informational answers may wait for a client.
const mostWaiting = 4

// pass passes an informational answer on, if the client has room for it.
func (a *attemptTrace) pass(one informational) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || one.code == http.StatusContinue || one.code == http.StatusSwitchingProtocols {
		return
	}
	if a.informed == nil {
		a.informed, a.written = make(chan informational, mostWaiting), make(chan struct{})
		go a.inform(a.informed)
	}
	select {
	case a.informed <- one:
	default:
	}
}

// inform writes informational answers. Until end, nobody else uses the writer.
func (a *attemptTrace) inform(all <-chan informational) {
	defer close(a.written)
	for one := range all {
		own := maps.Clone(a.w.Header())
		copyAnswerHeader(a.w.Header(), one.header)
		a.w.WriteHeader(one.code)
		clear(a.w.Header())
		maps.Copy(a.w.Header(), own)
	}
}

// end waits until the informational answers are written. From then on only the handler uses the
// writer.
func (a *attemptTrace) end() {
	a.mu.Lock()
	first := !a.ended
	a.ended = true
	informed := a.informed
	a.mu.Unlock()
	if first && informed != nil {
		close(informed)
		<-a.written
	}
}
