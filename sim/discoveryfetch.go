package sim

import (
	"net/http"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// fetched is what a fetch of a peer's discovery brings.
type fetched struct {
	groups  discovery.Groups
	version string
	hash    string // of both documents, as its endpoint lease has it
}

// fetch asks a peer for one of its own discovery documents. Bytes are not made and read again: the parts that do that have tests of their own.
func (s *Simulator) fetch(l *link, root int, by requester) *exchange {
	x := s.newExchange()
	x.link, x.requester, x.root = l, by, root
	x.target, x.hop = s.servers[l.to], -1
	l.inFlight = append(l.inFlight, x)
	s.dial(x)
	return x
}

// arriveFetch answers a fetch at its target.
func (s *Simulator) arriveFetch(x *exchange) {
	srv := x.target
	if f := &srv.broken[x.root]; f.on {
		f.failed++
		f.answer(x)
		return
	}
	x.fetched = fetched{srv.roots()[x.root], srv.release, srv.document().Hash}
	brings := len(srv.version.Bodies[x.root])
	x.back(headerBytes+brings, part{status: http.StatusOK, brings: brings, ends: true})
}

// brokenDocument is a discovery document that fails for peers while on.
type brokenDocument struct {
	on     bool
	how    fault.DiscoveryFailure
	failed int // fetches
}

// answer fails a fetch. What comes before an answer breaks off comes at once.
func (f *brokenDocument) answer(x *exchange) {
	brings := 0
	switch f.how {
	case fault.ServerError:
		x.back(headerBytes, part{status: http.StatusInternalServerError, ends: true})
		return
	case fault.CutShort:
		brings = len(x.target.version.Bodies[x.root]) / 2
	}
	x.back(headerBytes+brings, part{status: http.StatusOK, brings: brings})
	x.back(0, part{breaks: true})
}
