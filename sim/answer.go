package sim

import (
	"net/http"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/sim/vtime"
)

// part is what of an answer arrives at once.
type part struct {
	status       int // 0 if the answer has begun
	header       http.Header
	said         int // bytes of the body
	brings       int // bytes of a document, of which nothing is said
	ends, breaks bool
}

// back sends something of the answer back: the far end calls it, what it carries arrives later, in order.
func (x *exchange) back(bytes int, p part) {
	s, l := x.s, x.link
	if x.gone || x.lost {
		return
	}
	if a := l.has(fault.Timeout, fault.Down); a != nil {
		s.lose(x, a)
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

// arrival is that the next part of an answer is there.
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

// take adds a part to what has come back.
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

// cutShort lets no more than so many bytes of what is sent back arrive. Then the connection ends, and with it all else that is under way on it.
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
