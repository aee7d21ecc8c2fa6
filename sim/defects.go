package sim

import (
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
)

// Defects are the places at which a test plants a defect, to prove that the invariants find the
// defect. The zero value plants none. Only tests set a field.
type Defects struct {
	// Transport wraps the transport of a server to its peers.
	Transport func(http.RoundTripper) http.RoundTripper
	// Handler wraps the proxy of a server, and Local wraps the apiserver behind it.
	Handler func(self proxy.ServerID, h http.Handler) http.Handler
	Local   func(self proxy.ServerID, h http.Handler) http.Handler
	// Events changes the events of a server before its table sees them. It may return fewer events,
	// or others.
	Events func(self proxy.ServerID, events []proxy.Event) []proxy.Event
	// Obeys changes the behaviour of a process: it receives the behaviour that the flags ask for.
	Obeys func(self proxy.ServerID, told history.Configuration) history.Configuration
	// Counts changes the status with which a server counts a peer's answer.
	Counts func(status int) int
	// Believes is called when a server must reject a certificate of a peer, or its own. It reports
	// whether the server accepts the certificate instead.
	Believes func() bool
}

func (s *Setup) believes() bool { return s.Defects.Believes != nil && s.Defects.Believes() }

func (s *Setup) counts(status int) int {
	if s.Defects.Counts != nil {
		return s.Defects.Counts(status)
	}
	return status
}

func (s *Setup) transport(srv *server) http.RoundTripper {
	if s.Defects.Transport != nil {
		return s.Defects.Transport(transport{srv})
	}
	return transport{srv}
}

func (s *Setup) handler(srv *server, h http.Handler) http.Handler {
	if s.Defects.Handler != nil {
		return s.Defects.Handler(srv.id, h)
	}
	return h
}

func (s *Setup) local(srv *server) http.Handler {
	if s.Defects.Local != nil {
		return s.Defects.Local(srv.id, apiserver{srv})
	}
	return apiserver{srv}
}

func (s *Setup) events(srv *server, events []proxy.Event) []proxy.Event {
	if s.Defects.Events != nil {
		return s.Defects.Events(srv.id, events)
	}
	return events
}
