package sim

import (
	"net/http"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim/vtime"
)

// part is a piece of an answer that arrives at once.
type part struct {
	status       int // 0 if the answer has begun
	header       http.Header
	said         int // bytes of the body
	brings       int // bytes of a document, whose content is not simulated
	ends, breaks bool
}

// back sends a piece of the answer back. The far end calls it. The pieces arrive later, in order.
func (x *exchange) back(bytes int, p part) {
	s, l := x.s, x.link
	if x.gone {
		return
	}
	if a := l.has(fault.Timeout, fault.Down); a != nil {
		a.fed[1] = s.loop.Now()
		s.lose(x, a)
		return
	}
	if x.lost {
		return
	}
	if a := l.has(fault.Reset, fault.Down); a != nil || x.doomed != nil {
		s.doom(x, a, s.latency(), func() { x.back(bytes, p) })
		return
	}
	at := max(x.lastArrival, s.loop.Now()+s.delay(l, fault.Down, bytes))
	if a := l.has(fault.LimitData, fault.Down); a != nil && l.carried+int64(bytes) > a.Bytes {
		a.record.Evidence.Cut++
		s.cutShort(x, int(a.Bytes-l.carried), at, p)
		return
	}
	x.sent += bytes
	l.carried += int64(bytes)
	x.lastArrival = at
	x.coming = append(x.coming, p)
	s.loop.Schedule(at, nil, (*arrival)(x))
}

// arrival is the event that the next part of an answer arrives.
type arrival exchange

func (a *arrival) Happen() {
	x := (*exchange)(a)
	p := x.coming[x.came]
	x.came++
	x.link.heard = x.s.loop.Now()
	if !x.gone {
		x.take(p)
		x.requester.progressed()
	}
}

// take adds a part to the part of the answer that has arrived.
func (x *exchange) take(p part) {
	if p.status != 0 {
		x.status, x.header = p.status, p.header
	}
	x.body = x.said[:len(x.body)+p.said]
	x.brought += p.brings
	x.ended = x.ended || p.ends
	if p.breaks {
		x.broken(errReset)
	}
}

// cutShort delivers only the first bytes of an answer. Then it ends the connection and all
// exchanges on it.
func (s *Simulator) cutShort(x *exchange, left int, at vtime.Time, p part) {
	l := x.link
	begins := x.sent == 0 && left >= headerBytes
	x.lost = true
	l.warm = false
	s.loop.At(at, nil, func() {
		if begins && !x.gone {
			x.take(p)
			x.body, x.ended = x.body[:min(len(x.body), left-headerBytes)], false
			x.brought = min(x.brought, left-headerBytes)
		}
		x.broken(errReset)
	})
	for _, other := range l.inFlight {
		if other != x && other.connected && !other.lost {
			other.lost = true
			s.loop.At(at, nil, func() { other.broken(errReset) })
		}
	}
}

// fetched is the result of fetching a peer's discovery.
type fetched struct {
	groups  discovery.Groups
	version string
}

// fetch asks a peer for one of its own discovery documents. The document is passed as a value,
// without encoding.
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
	if s.withdrawn && !s.servers[x.link.from].policy.Fetching.Privileged {
		x.back(headerBytes, part{status: http.StatusForbidden, ends: true})
		return
	}
	x.fetched = fetched{srv.roots()[x.root], srv.release}
	brings := len(srv.version.Bodies[x.root])
	x.back(headerBytes+brings, part{status: http.StatusOK, brings: brings, ends: true})
}

// brokenDocument is the state of a discovery document of a server. While on is true, fetches of it
// by peers fail.
type brokenDocument struct {
	on     bool
	how    fault.DiscoveryFailure
	failed int // fetches
}

// answer fails a fetch. If the answer breaks off, everything before the break arrives at once.
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
