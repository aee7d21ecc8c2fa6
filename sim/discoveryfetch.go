package sim

import (
	"net/http"

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
	if f := srv.spoiled[x.root]; f != nil {
		f.Evidence.Affected++
		x.back(headerBytes, part{status: http.StatusInternalServerError, ends: true})
		return
	}
	x.fetched = fetched{srv.roots()[x.root], srv.version.Name, srv.document().Hash}
	x.back(headerBytes+len(srv.version.Bodies[x.root]), part{status: http.StatusOK, ends: true})
}
