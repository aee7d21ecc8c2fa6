package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/tape"
	"github.com/skewproof/skewproof/sim/vtime"
)

// These are the errors with which a connection can end. After errRefused, the request was certainly
// not delivered.
var (
	errRefused = &netError{text: "connection refused", undelivered: true}
	errReset   = errors.New("connection reset by peer")
)

// netError is an error of dialling.
type netError struct {
	text        string
	undelivered bool
	timeout     bool
}

func (e *netError) Error() string      { return e.text }
func (e *netError) NotDelivered() bool { return e.undelivered }
func (e *netError) Timeout() bool      { return e.timeout }
func (e *netError) Temporary() bool    { return e.timeout }

// headerBytes is the assumed size of the headers of an answer, for faults that count bytes.
const headerBytes = 256

// link is one direction of dialling: a fault on b→a does not affect a→b. An answer comes back on
// the link of its request.
type link struct {
	from, to int
	on       []*active         // faults, in the order in which they were injected
	obstacle scenario.Obstacle // from the setups of its ends
	dialled  int               // connections
	// warm is true if there is a connection. Then a request needs no handshake.
	warm bool
	// carried and asked are the numbers of bytes of answers and of requests on the connection since
	// the last fault was switched on.
	carried, asked int64

	heard    vtime.Time // when something last arrived on it
	watched  bool       // watch checks its health
	inFlight []*exchange
}

// active is a fault that is switched on, with its record.
type active struct {
	s *Simulator
	fault.Fault
	record history.Fault
	// fed is when a black hole with a time last got data of the connection, or met it: up, down.
	fed [2]vtime.Time
}

// covers reports whether the fault acts on a direction.
func (a *active) covers(d fault.Direction) bool {
	return a.Direction == "" || a.Direction == fault.Both || a.Direction == d
}

func (l *link) has(kind fault.Kind, d fault.Direction) *active {
	for _, a := range l.on {
		if a.Kind == kind && (a.covers(d) || kind == fault.Cut) {
			return a
		}
	}
	return nil
}

// blocked reports whether nothing gets through the link.
func (l *link) blocked() bool {
	return l.has(fault.Cut, "") != nil || l.has(fault.Timeout, fault.Up) != nil || l.has(fault.Timeout, fault.Down) != nil
}

// countAffected counts in the records that the faults on the link affected an exchange.
func (l *link) countAffected() {
	for _, a := range l.on {
		if a.Kind == fault.Cut {
			a.record.Evidence.Refused++
		} else {
			a.record.Evidence.Affected++
		}
	}
}

// tooSlow reports whether a ping between servers is answered too late because of faults on the
// link.
func (s *Simulator) tooSlow(l *link) bool {
	if l.from >= len(s.servers) {
		return false
	}
	var took time.Duration
	for _, a := range l.on {
		for _, d := range [...]fault.Direction{fault.Up, fault.Down} {
			if a.Kind == fault.Latency && a.covers(d) {
				took += a.Latency
			}
		}
	}
	_, answer := s.patience(l)
	return took > answer
}

// delay returns how long bytes take over the link in a direction.
func (s *Simulator) delay(l *link, d fault.Direction, bytes int) time.Duration {
	took := s.latency()
	toxics := s.toxics[:0]
	for _, a := range l.on {
		if !a.covers(d) || impairs(a.Kind) {
			continue
		}
		a.record.Evidence.Affected++
		f := a.Fault
		if f.Jitter > 0 {
			f.Latency += f.Jitter * time.Duration(s.tape.Choose(tape.Delays, 9)-4) / 4
		}
		toxics = append(toxics, f)
	}
	if s.toxics = toxics; len(toxics) > 0 {
		took += fault.Passage(toxics, int64(max(1, bytes))) // without a body there is still a frame
	}
	return took
}

// latencies are the times that a message takes through a healthy network or program. The most
// likely one is in the list twice.
var latencies = [...]time.Duration{500 * time.Microsecond, 500 * time.Microsecond, 2 * time.Millisecond, 200 * time.Microsecond, 15 * time.Millisecond}

// latency chooses one of the latencies for a message that no fault affects.
func (s *Simulator) latency() time.Duration {
	return latencies[s.tape.Choose(tape.Delays, len(latencies))]
}

// These are the times after which a silent connection between servers is closed, if the policy
// names none: the silence before the HTTP/2 ping, and the wait for the answer to the ping
// (client-go's transport).
const upstreamSilence, upstreamAnswer = 30 * time.Second, 15 * time.Second

// errSilent is the error of a connection that was closed because it was silent.
var errSilent = errors.New("http2: client connection lost")

// watch closes a connection if nothing arrives on it for too long.
func (s *Simulator) watch(l *link) {
	if l.watched || l.from >= len(s.servers) {
		return
	}
	l.watched = true
	silence, answer := s.patience(l)
	health := silence + answer
	// The other end of an unused connection was also pinged, and answered.
	l.heard = max(l.heard, s.loop.Now()-silence*time.Duration(s.tape.Choose(tape.Delays, 4))/4)
	s.loop.At(l.heard+health, s.servers[l.from].gate, func() {
		l.watched = false
		switch {
		case len(l.inFlight) == 0:
		case s.loop.Now() < l.heard+health || s.answering(l):
			s.watch(l)
		default:
			l.warm = false
			for i := len(l.inFlight) - 1; i >= 0; i-- {
				if i < len(l.inFlight) && l.inFlight[i].connected {
					l.inFlight[i].broken(errSilent)
				}
			}
		}
	})
}

// patience returns the silence before the ping on a connection between servers, and the wait for
// the answer.
func (s *Simulator) patience(l *link) (silence, answer time.Duration) {
	if all := s.servers[l.from].policy.Routing.Silence; all > 0 {
		return all / 2, all / 2
	}
	return upstreamSilence, upstreamAnswer
}

// expire resets the connection of a link when one of its streams has fed a black hole nothing for
// the time of the fault. A ping is data, too.
func (s *Simulator) expire(l *link, a *active) {
	end := vtime.Time(history.Forever)
	for i, d := range [...]fault.Direction{fault.Up, fault.Down} {
		if a.covers(d) {
			end = min(end, a.fed[i]+a.After)
		}
	}
	if both := a.covers(fault.Up) && a.covers(fault.Down); l.watched && !both { // the ping or its answer
		if silence, _ := s.patience(l); l.heard+silence <= s.loop.Now() {
			end = max(end, l.heard+silence+a.After)
		}
	}
	if end > s.loop.Now() {
		s.loop.At(end, nil, func() { s.expire(l, a) })
		return
	}
	if !l.warm || !slices.Contains(l.on, a) {
		return // the connection has ended before, or the fault is healed
	}
	s.breakConnection(l, a)
}

// answering reports whether the other end of a connection would answer a ping. Such an answer ends
// the silence.
func (s *Simulator) answering(l *link) bool {
	if l.blocked() || !s.servers[l.to].gate.Open() || s.tooSlow(l) {
		return false
	}
	l.heard = s.loop.Now()
	return true
}

// inject switches a fault on, and breaks the connections that the fault breaks at once.
func (s *Simulator) inject(f fault.Fault) *active {
	l := s.link(s.endpoint(f.From), s.endpoint(f.To))
	a := &active{s: s, Fault: f, record: history.Fault{
		Kind: string(f.Kind), From: f.From, To: f.To, Detail: f.Detail(), Start: s.loop.Now(),
		Blocks: f.Blocks(),
	}}
	l.on = append(l.on, a)
	l.carried, l.asked = 0, 0
	if f.Kind == fault.Cut {
		l.warm = false
		s.breakAll(l, a)
	}
	if f.Kind == fault.Timeout && f.After > 0 && l.warm {
		a.fed = [2]vtime.Time{s.loop.Now(), s.loop.Now()}
		s.expire(l, a)
	}
	if l.to == s.etcdEnd() {
		s.etcdChanged(s.servers[l.from])
	}
	return a
}

// heal switches a fault off. It resets the connections that hung in a black hole, because their
// lost data never arrives.
func (s *Simulator) heal(a *active) {
	l := s.link(s.endpoint(a.From), s.endpoint(a.To))
	l.on = slices.DeleteFunc(l.on, func(o *active) bool { return o == a })
	if a.Kind == fault.Reset {
		s.spare(l, a)
	}
	if a.Kind == fault.Timeout {
		l.warm = false
		for i := len(l.inFlight) - 1; i >= 0; i-- {
			if x := l.inFlight[i]; x.lost {
				a.record.Evidence.Cut++
				x.broken(errReset)
			}
		}
	}
	if l.to == s.etcdEnd() {
		s.etcdChanged(s.servers[l.from])
	}
	a.record.End = s.loop.Now()
}

// breakConnection resets the connection of a link, with everything on it.
func (s *Simulator) breakConnection(l *link, a *active) {
	a.record.Evidence.Cut++
	l.warm = false
	for i := len(l.inFlight) - 1; i >= 0; i-- {
		if i < len(l.inFlight) && l.inFlight[i].connected { // breaking one may end others
			l.inFlight[i].broken(errReset)
		}
	}
}

// breakAll resets every connection of a link.
func (s *Simulator) breakAll(l *link, a *active) {
	for i := len(l.inFlight) - 1; i >= 0; i-- {
		if i < len(l.inFlight) { // breaking one may end others
			a.record.Evidence.Cut++
			l.inFlight[i].broken(errReset)
		}
	}
}

// link returns the link between two ends. The servers are numbered from 0; the client and etcd
// follow.
func (s *Simulator) link(from, to int) *link {
	ends := len(s.servers) + 2
	return &s.links[from*ends+to]
}

func (s *Simulator) clientEnd() int { return len(s.servers) }
func (s *Simulator) etcdEnd() int   { return len(s.servers) + 1 }

func (s *Simulator) endpoint(name string) int {
	switch name {
	case fault.Client:
		return s.clientEnd()
	case fault.Etcd:
		return s.etcdEnd()
	}
	return s.byName[name]
}

// impairs reports whether a kind of fault may keep answers back. Other kinds only delay them.
func impairs(k fault.Kind) bool {
	switch k {
	case fault.Latency, fault.Bandwidth, fault.Slicer, fault.SlowClose:
		return false
	}
	return true
}
